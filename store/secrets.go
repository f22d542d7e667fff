package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/zalando/go-keyring"
)

// Secrets keeps the keys of endpoints. They are never in the database, in a session, or in a backup.
type Secrets interface {
	// Get returns the key of an endpoint; empty where there is none.
	Get(id string) (string, error)
	// Set keeps a key; an empty one is as Delete.
	Set(id, key string) error
	// Delete forgets a key; one that is not there is no error.
	Delete(id string) error
	// Where says in words where keys are kept.
	Where() string
	// Warning is empty, or a sentence for the user: keys are kept less well than they could be.
	Warning() string
}

// keyringService is the name under which the keyring lists the keys.
const keyringService = "velo"

// keyringWait is how long the system's keyring may take to say that it is there. One that takes
// longer is waiting for the user to unlock it.
const keyringWait = 3 * time.Second

// OpenSecrets opens the system's keyring; where there is none, a file in dir that only the user can
// read, with a warning.
func OpenSecrets(dir string) Secrets {
	file := &keyFile{path: filepath.Join(dir, "keys.json")}
	if err := keyringProblem(); err != nil {
		file.why = err
		file.tighten()
		return file
	}
	return &keyringSecrets{file: file}
}

// keyringProblem is why the keyring cannot be used; nil if it can.
func keyringProblem() error {
	if runtime.GOOS == "linux" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		// Without a bus the keyring's library would try to start one.
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/bus", os.Getuid())); err != nil {
			return errors.New("this login has no session bus")
		}
	}
	answer := make(chan error, 1)
	go func() {
		_, err := keyring.Get(keyringService, "is it there")
		answer <- err
	}()
	select {
	case err := <-answer:
		if errors.Is(err, keyring.ErrNotFound) {
			return nil
		}
		return err
	case <-time.After(keyringWait):
		return nil
	}
}

// keyringSecrets keeps keys in the system's keyring. Keys that an earlier start had to put into the
// file are found there, and move when they are set again.
type keyringSecrets struct{ file *keyFile }

func (k *keyringSecrets) Get(id string) (string, error) {
	key, err := keyring.Get(keyringService, id)
	if errors.Is(err, keyring.ErrNotFound) {
		return k.file.Get(id)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the key from the system keyring: %w; unlock the keyring and try again", err)
	}
	return key, nil
}

func (k *keyringSecrets) Set(id, key string) error {
	if key == "" {
		return k.Delete(id)
	}
	if err := keyring.Set(keyringService, id, key); err != nil {
		return fmt.Errorf("cannot save the key in the system keyring: %w; unlock the keyring and try again", err)
	}
	return k.file.Delete(id)
}

func (k *keyringSecrets) Delete(id string) error {
	if err := keyring.Delete(keyringService, id); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return fmt.Errorf("cannot delete the key from the system keyring: %w; unlock the keyring and try again", err)
	}
	return k.file.Delete(id)
}

func (k *keyringSecrets) Where() string { return "system keyring" }

func (k *keyringSecrets) Warning() string {
	if keys, err := k.file.read(); err == nil && len(keys) > 0 {
		return fmt.Sprintf("Some keys lie unencrypted in %s from a time without a keyring. Saving them again moves them into the keyring.", k.file.path)
	}
	return ""
}

// keyFile keeps keys in a file of mode 0600.
type keyFile struct {
	mu   sync.Mutex
	path string
	why  error // there is no keyring
	open bool  // others could read the file, before
}

// keyFileVersion is the version of the file's form.
const keyFileVersion = 1

type keyFileContent struct {
	Version int               `json:"version"`
	Keys    map[string]string `json:"keys"`
}

func (k *keyFile) read() (map[string]string, error) {
	data, err := os.ReadFile(k.path)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys: %w", err)
	}
	var c keyFileContent
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("cannot read the keys in %s: %w; delete the file and enter the keys again", k.path, err)
	}
	if c.Version > keyFileVersion {
		return nil, fmt.Errorf("cannot read the keys in %s: %w", k.path, ErrNewer)
	}
	if c.Keys == nil {
		c.Keys = map[string]string{}
	}
	return c.Keys, nil
}

func (k *keyFile) write(keys map[string]string) error {
	data, err := json.Marshal(keyFileContent{keyFileVersion, keys})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return fmt.Errorf("cannot save the keys: %w", err)
	}
	if err := replaceFile(k.path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot save the keys: %w", err)
	}
	return nil
}

func (k *keyFile) Get(id string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys, err := k.read()
	return keys[id], err
}

func (k *keyFile) Set(id, key string) error {
	if key == "" {
		return k.Delete(id)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	keys, err := k.read()
	if err != nil {
		return err
	}
	keys[id] = key
	return k.write(keys)
}

func (k *keyFile) Delete(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys, err := k.read()
	if err != nil {
		return err
	}
	if _, ok := keys[id]; !ok {
		return nil
	}
	delete(keys, id)
	if len(keys) > 0 {
		return k.write(keys)
	}
	if err := os.Remove(k.path); err != nil {
		return fmt.Errorf("cannot delete the key: %w", err)
	}
	return nil
}

// tighten takes away what others may do with the file.
func (k *keyFile) tighten() {
	info, err := os.Stat(k.path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return
	}
	k.open = true
	_ = os.Chmod(k.path, 0o600)
}

func (k *keyFile) Where() string {
	return fmt.Sprintf("file %s, readable only by you: no keyring was found", k.path)
}

func (k *keyFile) Warning() string {
	w := fmt.Sprintf("No system keyring was found (%v): keys lie unencrypted in %s, which only you can read.", k.why, k.path)
	if k.open {
		w += " Others could read it until now; change the keys that were in it."
	}
	return w
}
