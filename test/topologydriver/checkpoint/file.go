// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/kubernetes/pkg/kubelet/util/store"
	"k8s.io/kubernetes/pkg/util/filesystem"
)

// FileName is the name of the checkpoint file.
const FileName = "checkpoint.json"

// version is the version of the file's format. A change that older drivers would read wrongly needs a new version.
const version = "v1"

// envelope is the content of the file.
type envelope struct {
	Version string `json:"version"`
	// Checksum is the SHA-256 of State without white space, in hexadecimal.
	Checksum string          `json:"checksum"`
	State    json.RawMessage `json:"state"`
}

// CorruptError means that the file is damaged, so it is unknown which devices are in use.
type CorruptError struct {
	Path, Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("checkpoint %s: %s; the driver does not know which devices are in use: "+
		"move all pods that use devices of this driver away from the node (kubectl drain), delete the file, and restart the driver",
		e.Path, e.Reason)
}

// VersionError means that a driver has written the file in another version of the format.
type VersionError struct {
	Path, Version string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("checkpoint %s: version %q is not supported by this driver, which supports %q: "+
		"run the version of the driver that wrote it, or move all pods that use devices of this driver away from the node (kubectl drain) and delete the file",
		e.Path, e.Version, version)
}

// A File is a checkpoint file.
type File struct {
	path  string
	files store.Store
}

// New creates the directory if it does not exist. The file need not exist.
func New(dir string) (*File, error) {
	files, err := store.NewFileStore(dir, &filesystem.DefaultFs{})
	if err != nil {
		return nil, fmt.Errorf("directory of the checkpoint: %w", err)
	}
	return &File{path: filepath.Join(dir, FileName), files: files}, nil
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Load reads the state from the file. If there is no file, the state is empty. If the file can't be used, the error is a
// CorruptError or a VersionError.
func (f *File) Load() (State, error) {
	content, err := f.files.Read(FileName)
	if errors.Is(err, store.ErrKeyNotFound) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("checkpoint %s: %w", f.path, err)
	}
	return f.decode(content)
}

func (f *File) decode(content []byte) (State, error) {
	var e envelope
	if err := json.Unmarshal(content, &e); err != nil {
		return State{}, &CorruptError{Path: f.path, Reason: "is not JSON: " + err.Error()}
	}
	if e.Version == "" {
		return State{}, &CorruptError{Path: f.path, Reason: "has no version"}
	}
	if e.Version != version {
		return State{}, &VersionError{Path: f.path, Version: e.Version}
	}
	if sum, err := checksum(e.State); err != nil || sum != e.Checksum {
		return State{}, &CorruptError{Path: f.path, Reason: "the checksum does not match the content"}
	}
	var state State
	if err := json.Unmarshal(e.State, &state); err != nil {
		return State{}, &CorruptError{Path: f.path, Reason: err.Error()}
	}
	return state, nil
}

// Store writes the state to the file. It replaces the file atomically.
func (f *File) Store(state State) error {
	content, err := json.Marshal(state)
	if err != nil {
		return err
	}
	sum, err := checksum(content)
	if err != nil {
		return err
	}
	content, err = json.MarshalIndent(envelope{Version: version, Checksum: sum, State: content}, "", "  ")
	if err != nil {
		return err
	}
	if err := f.files.Write(FileName, content); err != nil {
		return fmt.Errorf("checkpoint %s: %w", f.path, err)
	}
	return nil
}

// checksum returns the checksum of a state in JSON. The checksum covers fields that this version of the driver does not know.
// White space does not change it.
func checksum(state json.RawMessage) (string, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, state); err != nil {
		return "", err
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:]), nil
}
