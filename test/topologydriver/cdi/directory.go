// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/util/store"
	"k8s.io/kubernetes/pkg/util/filesystem"
	cdispec "tags.cncf.io/container-device-interface/specs-go"
)

// DefaultDir is a directory where container runtimes look for CDI specs that are created at run time.
const DefaultDir = "/var/run/cdi"

// class is the class of the CDI devices. Their vendor is the name of the driver.
const class = "device"

// A Directory holds the CDI specs of one driver. Other drivers may use the same directory.
type Directory struct {
	path, driver string
	files        store.Store
}

// NewDirectory creates the directory if it does not exist.
func NewDirectory(path, driver string) (*Directory, error) {
	// The name of a driver may begin with a digit, but a CDI vendor may not.
	if driver == "" || driver[0] < 'a' || driver[0] > 'z' {
		return nil, fmt.Errorf("driver name %q: must begin with a letter, because it is the vendor name of CDI devices", driver)
	}
	files, err := store.NewFileStore(path, &filesystem.DefaultFs{})
	if err != nil {
		return nil, fmt.Errorf("directory of CDI specs: %w", err)
	}
	return &Directory{path: path, driver: driver, files: files}, nil
}

// Write writes or replaces the spec of a claim, and returns the qualified names of the CDI devices, in the order of devices. If
// a device occurs more than once, all occurrences have the same CDI device, or one for each share.
//
// Write replaces the file atomically, so the container runtime never reads a part of it.
func (d *Directory) Write(claim types.UID, devices []Device) ([]string, error) {
	spec := &cdispec.Spec{Kind: d.kind(), Devices: []cdispec.Device{}}
	names := make([]string, len(devices))
	written := map[string]bool{}
	for i, device := range devices {
		name := string(claim) + "-" + device.Name
		if device.Share != "" {
			name += "-" + string(device.Share)
		}
		names[i] = spec.Kind + "=" + name
		if written[name] {
			continue
		}
		written[name] = true
		spec.Devices = append(spec.Devices, cdispec.Device{
			Name:           name,
			ContainerEdits: cdispec.ContainerEdits{Env: []string{Variable(device.Driver, device.Name, device.Share) + "=" + device.Value()}},
		})
	}
	return names, d.write(claim, spec)
}

func (d *Directory) write(claim types.UID, spec *cdispec.Spec) error {
	version, err := cdispec.MinimumRequiredVersion(spec)
	if err != nil {
		return fmt.Errorf("version of a CDI spec: %w", err)
	}
	spec.Version = version
	content, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	if err := d.files.Write(d.file(claim), content); err != nil {
		return fmt.Errorf("CDI spec %s: %w", d.Path(claim), err)
	}
	return nil
}

// Remove removes the spec of a claim. A missing spec is not an error.
func (d *Directory) Remove(claim types.UID) error {
	if err := d.files.Delete(d.file(claim)); err != nil {
		return fmt.Errorf("CDI spec %s: %w", d.Path(claim), err)
	}
	return nil
}

// Path returns the path of a claim's spec.
func (d *Directory) Path(claim types.UID) string { return filepath.Join(d.path, d.file(claim)) }

// kind returns the part that the names of all CDI devices of the driver have in common: vendor and class.
func (d *Directory) kind() string { return d.driver + "/" + class }

// file returns the name of a claim's file. The CDI specification prescribes the form for specs that are created at run time.
func (d *Directory) file(claim types.UID) string {
	return d.driver + "-" + class + "_" + string(claim) + ".json"
}
