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

// namespace contains the pods and claims of the demos.
const namespace = "default"

// Options configure a demo.
type Options struct {
	// Config reaches the API server with all rights.
	Config *rest.Config
	// Examples contains the example manifests. The demos with a hub have manifests of their own.
	Examples fs.FS
	// Out gets the text of the demo.
	Out io.Writer
	// Color uses ANSI colours in drawings.
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
	// sites are all nodes with devices.
	sites []site
	// clusters are all clusters of a hub. Each contains the last answer of the API server.
	clusters []cluster
}

func newDemo(options Options) (*demo, error) {
	// Without a logger, clients of controller-runtime print a stack trace after half a minute.
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

// apply applies an example manifest. oldnew are pairs of texts: the first is replaced with the second.
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
