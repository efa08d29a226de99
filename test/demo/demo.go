// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/test/controlplane"
)

// namespace of everything that the demo creates in one.
const namespace = "default"

// Options of a demo.
type Options struct {
	// Config is how to reach the API server, with all rights.
	Config *rest.Config
	// Examples has the example manifests.
	Examples fs.FS
	// Out is where the demo is told.
	Out io.Writer
	// Color uses ANSI colours in drawings.
	Color bool
}

// Run shows the demo. The error is nil only if all of it came out as it should.
func Run(ctx context.Context, options Options) error {
	client, err := kubernetes.NewForConfig(options.Config)
	if err != nil {
		return err
	}
	d := &demo{Options: options, client: client, sites: sites()}
	for _, act := range []func(context.Context) error{
		d.setUp,
		d.neurons,
		d.connectedDevices,
		d.grid,
		d.noSuchSet,
		d.failsClosed,
		d.preempts,
		d.gang,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return d.noDeviceTwice(ctx)
}

type demo struct {
	Options
	client kubernetes.Interface
	// sites are all nodes with devices.
	sites []site
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.Out, format+"\n", args...)
}

// apply applies an example, changed as told.
func (d *demo) apply(ctx context.Context, example string, change func([]byte) []byte) error {
	manifest, err := fs.ReadFile(d.Examples, example)
	if err != nil {
		return err
	}
	if change != nil {
		manifest = change(manifest)
	}
	_, err = controlplane.Apply(ctx, d.Config, manifest, controlplane.ApplyOptions{Namespace: namespace})
	return err
}

// since is a duration as people read it.
func since(start time.Time) string {
	return fmt.Sprintf("%.1f s", time.Since(start).Seconds())
}
