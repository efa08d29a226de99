// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push copies images and charts to their registry, with the credentials of Docker's configuration,
// and says their names by digest. What is there already is left alone; a tag of something else is an
// error, because releases don't change.
func push(ctx context.Context, from, references string) error {
	var pushed strings.Builder
	for _, folder := range []string{imageFolder, chartFolder} {
		index, err := layout.ImageIndexFromPath(filepath.Join(from, folder))
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return err
		}
		for _, descriptor := range manifest.Manifests {
			reference, err := name.NewTag(descriptor.Annotations[nameAnnotation])
			if err != nil {
				return fmt.Errorf("%s: %w", folder, err)
			}
			if err := pushOne(ctx, index, descriptor, reference); err != nil {
				return fmt.Errorf("%s: %w", reference, err)
			}
			line := reference.Context().Digest(descriptor.Digest.String()).String() + "\n"
			fmt.Print(line)
			pushed.WriteString(line)
		}
	}
	if references == "" {
		return nil
	}
	return os.WriteFile(references, []byte(pushed.String()), 0o644)
}

func pushOne(ctx context.Context, index v1.ImageIndex, descriptor v1.Descriptor, reference name.Tag) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	var refused *transport.Error
	there, err := remote.Head(reference, options...)
	switch {
	case err == nil && there.Digest == descriptor.Digest:
		return nil
	case err == nil:
		return fmt.Errorf("the registry has %s under this tag, and the release is %s: take another version, or delete the tag", there.Digest, descriptor.Digest)
	case !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound:
		return err
	}
	if descriptor.MediaType.IsIndex() {
		nested, err := index.ImageIndex(descriptor.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(reference, nested, options...)
	}
	image, err := index.Image(descriptor.Digest)
	if err != nil {
		return err
	}
	return remote.Write(reference, image, options...)
}
