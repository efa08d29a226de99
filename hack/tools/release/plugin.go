// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// plugin is the program that users run beside kubectl.
const plugin = "kubectl-celset"

// buildPlugin writes an archive and what is in it for each platform, and krew's manifest.
func buildPlugin(ctx context.Context, o *options) error {
	license, err := os.ReadFile(filepath.Join(o.source, "LICENSE"))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "celset-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	sums := map[string]string{}
	for _, platform := range split(o.pluginsList) {
		system, architecture, _ := strings.Cut(platform, "/")
		binary := plugin
		if system == "windows" {
			binary += ".exe"
		}
		path := filepath.Join(work, binary)
		command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w "+versionFlag(o.version), "-o", path, "./cmd/"+plugin)
		command.Dir = o.source
		command.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+architecture)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", platform, err, output)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.Join([]string{plugin, system, architecture}, "_")
		archive, err := archiveOf(o, archived{binary, 0o755, content}, archived{"LICENSE", 0o644, license})
		if err != nil {
			return err
		}
		sums[name+".tar.gz"] = fmt.Sprintf("%x", sha256.Sum256(archive))
		if err := os.WriteFile(filepath.Join(o.output, name+".tar.gz"), archive, 0o644); err != nil {
			return err
		}
		if err := writeParts(path, filepath.Join(o.output, name+".cdx.json"), o.version); err != nil {
			return fmt.Errorf("%s: list what is in it: %w", platform, err)
		}
	}
	return writeKrew(o, sums)
}

// archived is a file in an archive.
type archived struct {
	name    string
	mode    int64
	content []byte
}

func archiveOf(o *options, files ...archived) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		if err := archive.WriteHeader(&tar.Header{
			Name: file.name, Mode: file.mode, Size: int64(len(file.content)), ModTime: o.created, Format: tar.FormatUSTAR,
		}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(file.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return out.Bytes(), err
}

// writeParts writes which modules a program is made of, and of which Go.
func writeParts(binary, file, version string) error {
	generator, err := bin.NewGenerator(binary, bin.WithLogger(zerolog.Nop()), bin.WithIncludeStdlib(true), bin.WithVersionOverride(version))
	if err != nil {
		return err
	}
	parts, err := generator.Generate()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(parts); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

var (
	krewComment  = regexp.MustCompile(`(?m)^#.*\n`)
	krewPlatform = regexp.MustCompile(`(?m)^  - selector: .*\n    uri: .*/([^/\n]+)\n    sha256: "(0+)"\n    bin: .*\n?`)
)

// writeKrew fills in the version and the sums of archives, and leaves out platforms without one.
func writeKrew(o *options, sums map[string]string) error {
	content, err := os.ReadFile(filepath.Join(o.source, "manifests", "krew", "celset.yaml"))
	if err != nil {
		return err
	}
	text := krewComment.ReplaceAllString(string(content), "")
	text = strings.ReplaceAll(text, "v0.0.0", o.version)
	filled := 0
	text = krewPlatform.ReplaceAllStringFunc(text, func(platform string) string {
		parts := krewPlatform.FindStringSubmatch(platform)
		sum, ok := sums[parts[1]]
		if !ok {
			return ""
		}
		filled++
		return strings.Replace(platform, parts[2], sum, 1)
	})
	if filled != len(sums) {
		return fmt.Errorf("manifests/krew/celset.yaml has %d of the platforms of %d archives; it must have all", filled, len(sums))
	}
	return os.WriteFile(filepath.Join(o.output, "krew.yaml"), []byte(text), 0o644)
}
