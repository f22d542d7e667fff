package runner

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"velo/assets"
	"velo/bench/client"
	"velo/bench/suite"
)

// maxPicture is the size of the largest picture file that is sent, in bytes.
const maxPicture = 20 << 20

// pictures finds the pictures of all image steps, by the names that the steps give. A name is that of a
// picture that travels along, or of a file in the suite's folder. A name that is neither but ends in a
// size that we have, as those of VeloBenchmark's own pictures do, stands for ours of that size; the notes
// say so.
func pictures(s *suite.Suite) (found map[string]client.Image, notes []string, err error) {
	found = map[string]client.Image{}
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Type != suite.Image {
			continue
		}
		if _, ok := found[step.Image]; ok {
			continue
		}
		img, note, err := picture(s.Dir, step.Image)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot run the suite %q: step %d (image), image: %w", s.Title, i+1, err)
		}
		if note != "" {
			notes = append(notes, note)
		}
		found[step.Image] = img
	}
	return found, notes, nil
}

func picture(dir, name string) (client.Image, string, error) {
	if data, ok := assets.Picture(name); ok {
		return client.Image{Name: name, MIME: "image/png", Data: data}, "", nil
	}
	if dir != "" && filepath.IsLocal(name) {
		img, err := pictureFile(dir, name)
		if err == nil || !os.IsNotExist(err) {
			return img, "", err
		}
	}
	if size := sizeIn(name); size > 0 {
		ours := assets.PictureName(size)
		if data, ok := assets.Picture(ours); ok {
			return client.Image{Name: ours, MIME: "image/png", Data: data},
				fmt.Sprintf("The picture %s is not here; %s, which has the same size, was sent in its place.", name, ours), nil
		}
	}
	var known []string
	for _, size := range assets.PictureSizes {
		known = append(known, assets.PictureName(size))
	}
	where := "put it into the suite's folder"
	if dir != "" {
		where = "put it into " + dir
	}
	return client.Image{}, "", fmt.Errorf("there is no picture %q; %s, or take one of %s", name, where, strings.Join(known, ", "))
}

// pictureFile reads a picture out of the suite's folder, and nothing that is outside of it: a suite may
// come from anybody.
func pictureFile(dir, name string) (client.Image, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return client.Image{}, err
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return client.Image{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPicture+1))
	if err != nil {
		return client.Image{}, fmt.Errorf("cannot read the picture %s: %w", name, err)
	}
	if len(data) > maxPicture {
		return client.Image{}, fmt.Errorf("the picture %s has more than %d MiB", name, maxPicture>>20)
	}
	mime := http.DetectContentType(data)
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return client.Image{}, fmt.Errorf("%s is not a picture that models take (PNG, JPEG, GIF or WebP), but %s", name, mime)
	}
	return client.Image{Name: name, MIME: mime, Data: data}, nil
}

// sizeIn is the number that a file name ends in, before its extension.
func sizeIn(name string) int {
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	digits := stem[len(strings.TrimRight(stem, "0123456789")):]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
