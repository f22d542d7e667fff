package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// categoriesKey is where the list of categories is, among the settings.
const categoriesKey = "categories"

// mostCategory is the length of a category's name, in bytes.
const mostCategory = 100

// Categories are the words that the user sorts sessions by, in the order of the alphabet.
func (s *Store) Categories() ([]string, error) {
	var list []string
	_, err := s.Settings(categoriesKey, 1, &list)
	return list, err
}

// AddCategory makes a category and returns its name as it was kept. One that is there already is no error.
func (s *Store) AddCategory(name string) (string, error) {
	name, err := categoryName(name)
	if err != nil {
		return "", err
	}
	err = s.changeCategories("add", name, func(_ *bolt.Tx, list []string) ([]string, error) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
		return list, nil
	})
	return name, err
}

// RenameCategory gives a category another name, and with it all of its sessions. The name of another
// category puts the two together.
func (s *Store) RenameCategory(old, name string) error {
	name, err := categoryName(name)
	if err != nil {
		return err
	}
	return s.changeCategories("rename", old, func(tx *bolt.Tx, list []string) ([]string, error) {
		i := slices.Index(list, old)
		if i < 0 {
			return nil, ErrNotFound
		}
		list = slices.Delete(list, i, i+1)
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
		return list, recategorise(tx, old, name)
	})
}

// DeleteCategory removes a category. Its sessions stay, without one.
func (s *Store) DeleteCategory(name string) error {
	return s.changeCategories("delete", name, func(tx *bolt.Tx, list []string) ([]string, error) {
		return slices.DeleteFunc(list, func(c string) bool { return c == name }), recategorise(tx, name, "")
	})
}

// SetCategory puts a session into a category, which is made if there is none of that name; empty = into
// none.
func (s *Store) SetCategory(id, category string) error {
	if category != "" {
		var err error
		if category, err = s.AddCategory(category); err != nil {
			return err
		}
	}
	return s.changeSummary(id, "sort", func(sum *Summary) { sum.Category = category })
}

// categoryName is a name as it is kept: on one line, with single spaces.
func categoryName(name string) (string, error) {
	name = strings.Join(strings.Fields(name), " ")
	switch {
	case name == "":
		return "", errors.New("cannot make a category without a name")
	case len(name) > mostCategory:
		return "", fmt.Errorf("cannot make a category of so long a name: %d bytes are the most", mostCategory)
	}
	return name, nil
}

func (s *Store) changeCategories(verb, name string, change func(*bolt.Tx, []string) ([]string, error)) error {
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketSettings)
		var list []string
		if data := b.Get([]byte(categoriesKey)); data != nil {
			var d document
			if err := json.Unmarshal(bytes.Clone(data), &d); err != nil {
				return err
			}
			if d.Schema > 1 {
				return ErrNewer
			}
			if err := json.Unmarshal(d.Value, &list); err != nil {
				return err
			}
		}
		list, err := change(tx, list)
		if err != nil {
			return err
		}
		slices.SortFunc(list, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
		value, err := json.Marshal(list)
		if err != nil {
			return err
		}
		return putJSON(b, categoriesKey, document{1, value})
	})
	if err != nil {
		return fmt.Errorf("cannot %s the category %q: %w", verb, name, err)
	}
	return nil
}

// recategorise moves the sessions of one category to another.
func recategorise(tx *bolt.Tx, old, name string) error {
	b := tx.Bucket(bucketSessions)
	var moved []Summary
	err := b.ForEach(func(_, v []byte) error {
		var sum Summary
		if json.Unmarshal(v, &sum) == nil && sum.Category == old { // a damaged one has no category
			moved = append(moved, sum)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range moved {
		moved[i].Category = name
		if err := putJSON(b, moved[i].ID, &moved[i]); err != nil {
			return err
		}
	}
	return nil
}
