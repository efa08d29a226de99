// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	kobuild "github.com/google/ko/pkg/build"
	koconfig "github.com/google/ko/pkg/commands/options"
)

const (
	// imageFolder and chartFolder are OCI image layouts in the output.
	imageFolder, chartFolder = "images", "charts"
	baseName                 = "celset-base"
)

// images are those of a release.
type images struct {
	registry, version string
	digests           map[string]v1.Hash
}

// reference is the full name of an image, by digest.
func (i *images) reference(program string) string {
	return fmt.Sprintf("%s/%s:%s@%s", i.registry, program, i.version, i.digests[program])
}

// buildImages builds with the settings of .ko.yaml, as "make images" does, but on a base of our own
// and into a layout.
func buildImages(ctx context.Context, o *options) (*images, error) {
	base, err := baseImage()
	if err != nil {
		return nil, err
	}
	if err := checkBase(base); err != nil {
		return nil, err
	}
	config := koconfig.BuildOptions{WorkingDirectory: o.source}
	if err := config.LoadConfig(); err != nil {
		return nil, fmt.Errorf(".ko.yaml: %w", err)
	}
	paths := map[string]string{}
	for path, settings := range config.BuildConfigs {
		settings.Ldflags = append(settings.Ldflags, versionFlag(o.version))
		config.BuildConfigs[path] = settings
		paths[filepath.Base(path)] = path
	}
	programs := slices.Sorted(maps.Keys(paths))
	if o.programs != "" {
		programs = split(o.programs)
		slices.Sort(programs)
	}
	platforms := config.DefaultPlatforms
	if o.platforms != "" {
		platforms = split(o.platforms)
	}
	result := &images{registry: o.registry, version: o.version, digests: map[string]v1.Hash{}}
	folder, err := layout.Write(filepath.Join(o.output, imageFolder), empty.Index)
	if err != nil {
		return nil, err
	}
	baseDigest, err := base.Digest()
	if err != nil {
		return nil, err
	}
	baseReference, err := name.NewDigest(fmt.Sprintf("%s/%s@%s", o.registry, baseName, baseDigest))
	if err != nil {
		return nil, err
	}
	if err := folder.AppendIndex(base, named(o.registry, baseName, o.version)); err != nil {
		return nil, err
	}
	settings := []kobuild.Option{
		kobuild.WithBaseImages(func(context.Context, string) (name.Reference, kobuild.Result, error) { return baseReference, base, nil }),
		kobuild.WithConfig(config.BuildConfigs), kobuild.WithPlatforms(platforms...),
		kobuild.WithCreationTime(v1.Time{Time: o.created}), kobuild.WithKoDataCreationTime(v1.Time{Time: o.created}),
		kobuild.WithSPDX(o.version), kobuild.WithSBOMDir(o.output),
	}
	for key, value := range map[string]string{"version": o.version, "revision": o.revision, "source": "https://github.com/celset/celset", "licenses": "Apache-2.0"} {
		if value != "" {
			settings = append(settings, kobuild.WithLabel("org.opencontainers.image."+key, value))
		}
	}
	builder, err := kobuild.NewGo(ctx, o.source, settings...)
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		path, ok := paths[program]
		if !ok {
			return nil, fmt.Errorf("program %q: .ko.yaml has no build with that main; it has %v", program, slices.Sorted(maps.Keys(paths)))
		}
		built, err := builder.Build(ctx, kobuild.StrictScheme+path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		if result.digests[program], err = built.Digest(); err != nil {
			return nil, err
		}
		if err := appendTo(folder, built, named(o.registry, program, o.version)); err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
	}
	return result, nil
}

// appendTo adds an image of one platform or of several.
func appendTo(folder layout.Path, built kobuild.Result, options ...layout.Option) error {
	switch built := built.(type) {
	case v1.ImageIndex:
		return folder.AppendIndex(built, options...)
	case v1.Image:
		return folder.AppendImage(built, options...)
	}
	return errors.New("neither an image nor an index")
}

// nameAnnotation has the full name of what is in a layout; containerd looks at the other one.
const (
	nameAnnotation       = "org.opencontainers.image.ref.name"
	containerdAnnotation = "io.containerd.image.name"
)

func named(registry, repository, tag string) layout.Option {
	full := fmt.Sprintf("%s/%s:%s", registry, repository, tag)
	return layout.WithAnnotations(map[string]string{nameAnnotation: full, containerdAnnotation: full})
}

// programs are those with an image, in order.
func (i *images) programs() []string { return slices.Sorted(maps.Keys(i.digests)) }
