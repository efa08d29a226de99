// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/celset/celset/test/controlplane"
)

// namespace is the namespace of the demos' pods and claims.
const namespace = "default"

// Options configure a demo.
type Options struct {
	// Config connects to the API server with all rights.
	Config *rest.Config
	// Examples is the folder of the example manifests. Demos with a hub use their own manifests instead.
	Examples fs.FS
	// Out receives the text of the demo.
	Out io.Writer
	// Color turns on ANSI colours in drawings.
	Color bool
}

// manifests contains the manifests of the demos with a hub, and of the act with DeviceAttributes.
//
//go:embed attributes fleet placement
var manifests embed.FS

// demo holds the clients of the API server that a demo runs on, and the nodes or clusters that it shows.
type demo struct {
	Options
	client client.Client
	kube   kubernetes.Interface
	// sites are all nodes that have devices.
	sites []site
	// clusters are all clusters of a hub, as last read from the API server.
	clusters []cluster
}

func newDemo(options Options) (*demo, error) {
	// Discard logs. If no logger is set, controller-runtime prints a stack trace after half a minute.
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1alpha1.Install, clusterv1beta1.Install, clusterv1beta2.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(options.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(options.Config)
	return &demo{Options: options, client: c, kube: kube}, err
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.Out, format+"\n", args...)
}

// apply applies an example manifest, after replacing texts in it. oldnew is a list of pairs: old text, new text.
func (d *demo) apply(ctx context.Context, name string, oldnew ...string) error {
	manifest, err := fs.ReadFile(d.Examples, name)
	if err != nil {
		return err
	}
	return d.applyText(ctx, strings.NewReplacer(oldnew...).Replace(string(manifest)))
}

func (d *demo) applyText(ctx context.Context, manifest string) error {
	_, err := controlplane.Apply(ctx, d.Config, []byte(manifest), controlplane.ApplyOptions{Namespace: namespace})
	return err
}

// create creates objects.
func (d *demo) create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := d.client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// acts runs the parts of a demo one after the other.
func acts(ctx context.Context, all ...func(context.Context) error) error {
	for _, act := range all {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}
