// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"encoding/pem"
	"fmt"
	"io"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// knownBase is the digest of the base image of all platforms. It is written down so that whoever
// reviews an update sees that images change underneath the programs.
//
//go:embed base.digest
var knownBase string

// basePlatforms does not depend on what is released, so that the digest does not.
var basePlatforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// nonroot is the user of manifests and chart.
const nonroot = 65532

// baseImage has what a static program takes: a user that is not root, a place for files, and whom to
// trust. It is made here because getting one takes a network, and a registry that keeps it.
func baseImage() (v1.ImageIndex, error) {
	layer, err := baseLayer()
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range basePlatforms {
		image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		if image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer,
			History: v1.History{CreatedBy: "hack/tools/release", Comment: "users, folders and certificates"},
		}); err != nil {
			return nil, err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		config = config.DeepCopy()
		config.OS, config.Architecture = platform.OS, platform.Architecture
		config.Config = v1.Config{
			User: fmt.Sprint(nonroot), WorkingDir: "/home/nonroot",
			Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE=/" + certificates},
		}
		if image, err = mutate.ConfigFile(image, config); err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return index, nil
}

// checkBase is an error if the base image is not the known one.
func checkBase(index v1.ImageIndex) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if known := strings.TrimSpace(knownBase); digest.String() != known {
		return fmt.Errorf("the base image has changed to %s, and %s is known: if that is intended, have it written to hack/tools/release/base.digest with \"make base-digest\"", digest, known)
	}
	return nil
}

const certificates = "etc/ssl/certs/ca-certificates.crt"

func baseLayer() (v1.Layer, error) {
	var trusted bytes.Buffer
	for root := range bundle.Roots() {
		// What is trusted under conditions only can't be said in this format.
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&trusted, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, entry := range []struct {
		name    string
		mode    int64
		owner   int
		content string
	}{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", nonroot)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%[1]d:nonroot:/home/nonroot:/sbin/nologin\n", nonroot)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: certificates, mode: 0o644, content: trusted.String()},
		{name: "home/", mode: 0o755},
		{name: "home/nonroot/", mode: 0o700, owner: nonroot},
		{name: "root/", mode: 0o700},
		{name: "tmp/", mode: 0o1777},
	} {
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(entry.name, "/") {
			kind = tar.TypeDir
		}
		if err := archive.WriteHeader(&tar.Header{
			Typeflag: kind, Name: entry.name, Mode: entry.mode, Uid: entry.owner, Gid: entry.owner,
			Size: int64(len(entry.content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		}); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(archive, entry.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(out.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
