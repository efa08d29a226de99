// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/cli-runtime/pkg/resource"
)

// maxInput is the maximum number of bytes that are read from one file or stream, enough for the objects of some 5,000 nodes.
// The limit is needed because objects take about ten times the memory of their text, and a stream may be endless.
var maxInput int64 = 256 << 20

// bounded is a reader that fails when it has read more than maxInput bytes.
type bounded struct {
	from io.Reader
	name string
	left int64
}

// newBounded returns a reader that fails after maxInput bytes of the stream. name is the name of the stream in the error
// message.
func newBounded(from io.Reader, name string) io.Reader {
	return &bounded{from: from, name: name, left: maxInput}
}

// All reads a stream to its end. It fails if the stream is longer than maxInput.
func All(stream io.Reader, name string) ([]byte, error) {
	return io.ReadAll(newBounded(stream, name))
}

// Read implements [io.Reader].
func (b *bounded) Read(into []byte) (int, error) {
	n, err := b.from.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return 0, tooLong(b.name)
	}
	return n, err
}

func tooLong(name string) error {
	return fmt.Errorf("%s: more than %d MiB, the limit: split the input, or remove objects that are not needed", name, maxInput>>20)
}

// checkSizes fails if a file is longer than maxInput, also a file in a directory. It returns names that have no size, such as
// pipes, as streams.
func checkSizes(names []string, recursive bool) (files []string, streams []string, err error) {
	for _, name := range names {
		info, statErr := os.Stat(name)
		switch {
		case statErr != nil:
			// The name may be a URL. If not, kubectl's library reports the error.
			files = append(files, name)
		case info.IsDir():
			files = append(files, name)
			err = checkFolder(name, recursive)
		case info.Mode().IsRegular():
			files = append(files, name)
			err = checkSize(name, func() (fs.FileInfo, error) { return info, nil })
		default:
			streams = append(streams, name)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return files, streams, nil
}

// checkFolder checks the sizes of the files that kubectl's library would read in a directory.
func checkFolder(folder string, recursive bool) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != folder && !recursive:
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains(resource.FileExtensions, filepath.Ext(path)):
			return nil
		}
		return checkSize(path, entry.Info)
	})
}

func checkSize(name string, stat func() (fs.FileInfo, error)) error {
	info, err := stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > maxInput {
		return tooLong(name)
	}
	return err
}
