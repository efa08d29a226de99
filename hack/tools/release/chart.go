// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	helmregistry "helm.sh/helm/v4/pkg/registry"
)

// chartRepository is below the registry; helm adds the name of the chart.
const chartRepository = "charts"

// packageCharts writes each chart as an archive, and as what a registry has of it.
func packageCharts(ctx context.Context, o *options, released *images) error {
	charts, err := filepath.Glob(filepath.Join(o.source, "manifests", "charts", "*", "Chart.yaml"))
	if err != nil {
		return err
	}
	if len(charts) == 0 {
		return errors.New("there is none below manifests/charts")
	}
	folder, err := layout.Write(filepath.Join(o.output, chartFolder), empty.Index)
	if err != nil {
		return err
	}
	for _, file := range charts {
		loaded, err := loader.LoadDir(filepath.Dir(file))
		if err != nil {
			return err
		}
		if err := setRelease(loaded, o, released); err != nil {
			return fmt.Errorf("%s: %w", loaded.Name(), err)
		}
		archive, err := chartutil.Save(loaded, o.output)
		if err != nil {
			return err
		}
		if err := addChart(ctx, o, folder, loaded.Metadata, archive); err != nil {
			return fmt.Errorf("%s: %w", loaded.Name(), err)
		}
	}
	return nil
}

// setRelease has a chart name the images of the release, and nothing depend on when its files were
// written.
func setRelease(c *chart.Chart, o *options, released *images) error {
	c.Metadata.Version, c.Metadata.AppVersion = strings.TrimPrefix(o.version, "v"), o.version
	c.ModTime, c.SchemaModTime = o.created, o.created
	for _, files := range [][]*common.File{c.Raw, c.Templates, c.Files} {
		for _, file := range files {
			file.ModTime = o.created
		}
	}
	for _, file := range c.Raw {
		if file.Name != chartutil.ValuesfileName {
			continue
		}
		var err error
		file.Data, err = setImages(file.Data, released)
		return err
	}
	return fmt.Errorf("there is no %s", chartutil.ValuesfileName)
}

// setImages changes lines and leaves all others as they are, comments too.
func setImages(values []byte, released *images) ([]byte, error) {
	var digests strings.Builder
	for _, program := range released.programs() {
		fmt.Fprintf(&digests, "\n    %s: %s", program, released.digests[program])
	}
	for _, change := range []struct{ line, with string }{
		{`  registry: ""`, "  registry: " + released.registry},
		{`  tag: dev`, "  tag: " + released.version},
		{`  digests: {}`, "  digests:" + digests.String()},
	} {
		pattern := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(change.line) + "$")
		if found := pattern.FindAllIndex(values, -1); len(found) != 1 {
			return nil, fmt.Errorf("values.yaml has the line %q %d times; it takes one, to name the images of the release", change.line, len(found))
		}
		values = pattern.ReplaceAllLiteral(values, []byte(change.with))
	}
	return values, nil
}

// addChart has helm push to a registry in this process, so that the layout has what helm would push.
func addChart(ctx context.Context, o *options, folder layout.Path, metadata *chart.Metadata, archive string) error {
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(&bytes.Buffer{}))
	if err != nil {
		return err
	}
	reference := fmt.Sprintf("%s/%s/%s:%s", listener.Addr(), chartRepository, metadata.Name, metadata.Version)
	if _, err := client.Push(content, reference, helmregistry.PushOptCreationTime(o.created.Format(time.RFC3339))); err != nil {
		return err
	}
	pushed, err := name.ParseReference(reference)
	if err != nil {
		return err
	}
	image, err := remote.Image(pushed, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	return folder.AppendImage(image, named(o.registry, chartRepository+"/"+metadata.Name, metadata.Version))
}
