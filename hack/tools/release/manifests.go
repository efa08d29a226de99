// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// crdFolder has a component of kustomize, which overlays add to what they have.
const crdFolder = "placement/crds"

// renderManifests writes one file for each way to install with kustomize, with the images of the
// release. webhook/secret is none: it takes a certificate that only the user has.
func renderManifests(o *options, released *images) error {
	files := filesys.MakeFsInMemory()
	source := filepath.Join(o.source, "manifests")
	var names []string
	err := filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		names = append(names, name)
		return files.WriteFile("/manifests/"+name, content)
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		folder := path.Dir(name)
		kind, last := path.Split(folder)
		if path.Base(name) != "kustomization.yaml" {
			continue
		}
		switch kind {
		case "overlays/":
		case "monitoring/":
			last = "monitoring-" + last
		default:
			// The kinds alone are for those who keep them apart from programs.
			alone := map[string]string{"webhook/cert-manager": "webhook", crdFolder: "placement-crds", "placement/profile-crds": "profile-crds"}
			if last = alone[folder]; last == "" {
				continue
			}
		}
		content, missing, err := render(files, folder, released)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		if len(missing) > 0 {
			if o.programs == "" {
				return fmt.Errorf("%s: there is no image of %v", folder, missing)
			}
			fmt.Printf("manifests/%s is left out: there is no image of %v\n", folder, missing)
			continue
		}
		if err := os.WriteFile(filepath.Join(o.output, "install-"+last+".yaml"), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// render does what an overlay of a user would do that names the images of the release. Programs
// whose images it asks for and that are not among them are missing.
func render(files filesys.FileSystem, folder string, released *images) (content []byte, missing []string, err error) {
	overlay := types.Kustomization{Resources: []string{"../manifests/" + folder}}
	if folder == crdFolder {
		overlay = types.Kustomization{TypeMeta: types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}, Components: overlay.Resources}
	}
	for _, program := range released.programs() {
		overlay.Images = append(overlay.Images, types.Image{
			Name: program, NewName: released.registry + "/" + program,
			NewTag: released.version, Digest: released.digests[program].String(),
		})
	}
	described, err := yaml.Marshal(overlay)
	if err != nil {
		return nil, nil, err
	}
	if err := files.WriteFile("/release/kustomization.yaml", described); err != nil {
		return nil, nil, err
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/release")
	if err != nil {
		return nil, nil, err
	}
	if content, err = objects.AsYaml(); err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(content)) {
		if _, image, found := strings.Cut(line, "image: "); found && !strings.HasPrefix(image, released.registry+"/") {
			missing = append(missing, strings.TrimSpace(image))
		}
	}
	return content, slices.Compact(missing), nil
}
