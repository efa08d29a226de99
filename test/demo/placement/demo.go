// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/test/controlplane"
)

// User is whom the controller authenticates as: the ServiceAccount in
// manifests/placement/rbac.yaml.
const User = "system:serviceaccount:celset-system:celset-placement"

// Options of a demo.
type Options struct {
	// Config is how to reach the API server, with all rights.
	Config *rest.Config
	// Controller is how the controller reaches it, as [User].
	Controller *rest.Config
	// RBAC is the manifest that gives User its rights.
	RBAC []byte
	// Out is where the demo is told.
	Out io.Writer
	// Log gets the logs of the controller; nil drops them.
	Log io.Writer
}

//go:embed manifests
var manifests embed.FS

// demo is one that runs.
type demo struct {
	Options
	client client.Client
	logger logr.Logger
}

// Run shows the demo. The error is nil only if all of it came out as it should.
func Run(ctx context.Context, options Options) error {
	return run(ctx, options, newFleet(time.Now()), func(ctx context.Context, d *demo) error { return d.tell(ctx) })
}

// Namespace has the Placements of the demo.
const Namespace = namespace

// Furnish sets the hub of the demo up: its clusters with their scores, sets and rights. Nothing decides.
func Furnish(ctx context.Context, options Options) error {
	d, err := newDemo(options)
	if err != nil {
		return err
	}
	if err := d.setUp(ctx, newFleet(time.Now())); err != nil {
		return fmt.Errorf("set up the hub: %w", err)
	}
	return nil
}

// run calls tell on a hub with this fleet, while the controller decides.
func run(ctx context.Context, options Options, fleet []member, tell func(context.Context, *demo) error) error {
	d, err := newDemo(options)
	if err != nil {
		return err
	}
	if err := d.setUp(ctx, fleet); err != nil {
		return fmt.Errorf("set up the hub: %w", err)
	}
	ctx, stop, err := d.startController(ctx)
	if err != nil {
		return fmt.Errorf("start the controller: %w", err)
	}
	err = tell(ctx, d)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return errors.Join(err, stop())
}

func newDemo(options Options) (*demo, error) {
	options.Config, options.Controller = unlimited(options.Config), unlimited(options.Controller)
	logger := newLogger(options.Log)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), controller.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(options.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &demo{Options: options, client: c, logger: logger}, nil
}

// unlimited has no limit of requests on the client's side.
func unlimited(config *rest.Config) *rest.Config {
	result := rest.CopyConfig(config)
	result.QPS = -1
	return result
}

// tell tells all acts, and checks in the end what they have left.
func (d *demo) tell(ctx context.Context) error {
	for _, act := range []func(context.Context) error{
		d.introduce,
		d.expressions,
		d.recovery,
		d.weights,
		d.regions,
		d.mistake,
		d.nothingElse,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.Out, format+"\n", args...)
}

// apply applies a manifest of this package.
func (d *demo) apply(ctx context.Context, name string) error {
	manifest, err := manifests.ReadFile(path.Join("manifests", name))
	if err != nil {
		return err
	}
	_, err = controlplane.Apply(ctx, d.Config, manifest, controlplane.ApplyOptions{})
	return err
}
