// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cmd/internal/served/leases"
	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
	"github.com/celset/celset/internal/clusterstate/watching"
)

// pageSource provides the objects for the page: those of files, of the cluster, or of both. It implements [answers.Source] and
// serve.Changes.
type pageSource struct {
	// files has the objects in files, or nil. filesHub has the objects of a hub in files, or nil.
	files    *clusterstate.Objects
	filesHub *placements.Hub
	// watcher follows the cluster. It is nil if only files were read.
	watcher *watching.Watcher
	// namespace is the only namespace whose Placements are shown, or "".
	namespace string
	origin    string
	// schedulers reads the profiles of the schedulers. It is nil if only files were read.
	schedulers func(context.Context) answers.Schedulers

	mutex sync.Mutex
	// last is the view of the last question. hub is the hub in it, and hubVersion the version of its objects.
	last                   *answers.View
	hub                    *placements.Hub
	hubWarning, hubVersion string
}

// source returns the source of the page. If it returns a source and an error, the caller must wait for the source.
func (s *serveOptions) source(ctx context.Context) (*pageSource, error) {
	namespace, err := s.namespace()
	if err == nil {
		err = s.checkInput()
	}
	if err != nil {
		return nil, err
	}
	from := &pageSource{}
	if s.only {
		from.namespace = namespace
	}
	if s.readsFiles() {
		if err := s.readFiles(from, namespace); err != nil {
			return nil, err
		}
	}
	if !s.readsFiles() || s.withCluster {
		return from, s.watch(ctx, from, namespace)
	}
	return from, nil
}

// readFiles reads the files of -f and -k.
func (s *serveOptions) readFiles(from *pageSource, namespace string) error {
	documents, err := reading.Documents(s.files.ToOptions(), s.In)
	if err != nil {
		return err
	}
	from.files = &clusterstate.Objects{}
	for _, document := range documents {
		if err := from.files.Add(document, namespace); err != nil {
			return err
		}
	}
	from.files.LimitQuantities()
	hub, err := placements.FromDocuments(documents, namespace)
	if err != nil {
		return err
	}
	if len(hub.Placements()) > 0 {
		from.filesHub = hub
	}
	names := slices.Clone(*s.files.Filenames)
	if *s.files.Kustomize != "" {
		names = append(names, *s.files.Kustomize)
	}
	from.origin = strings.Join(names, ", ")
	s.followFiles(from.files)
	return nil
}

// watch begins to follow the cluster, and waits until the objects were read.
func (s *serveOptions) watch(ctx context.Context, from *pageSource, namespace string) error {
	config, err := s.config.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := s.gates.follow(ctx, client.Discovery()); err != nil {
		return err
	}
	from.schedulers = schedulersIn(client, s.schedulers)
	name := "the cluster at " + config.Host
	if raw, err := s.config.ToRawKubeConfigLoader().RawConfig(); err == nil && raw.CurrentContext != "" {
		name = "context " + raw.CurrentContext
		if *s.config.Context != "" {
			name = "context " + *s.config.Context
		}
	}
	if from.origin != "" {
		name += " with " + from.origin
	}
	from.origin = name
	from.watcher, err = watching.Start(ctx, config, watching.Options{Namespace: namespace, Only: s.only, Others: placements.Resources()})
	if err != nil {
		return err
	}
	defer s.announce("reading the cluster")()
	return from.watcher.Synced(ctx)
}

const (
	// schedulersAge is the time after which the profiles of the schedulers are read again.
	schedulersAge = 10 * time.Second
	// schedulersTimeout is the time limit for reading the profiles.
	schedulersTimeout = 5 * time.Second
)

// schedulersIn returns a function that returns the schedulers from the Leases of a namespace. The result can be as old as
// schedulersAge.
func schedulersIn(client kubernetes.Interface, namespace string) func(context.Context) answers.Schedulers {
	var mutex sync.Mutex
	var read time.Time
	last := answers.Schedulers{Namespace: namespace}
	return func(ctx context.Context) answers.Schedulers {
		mutex.Lock()
		defer mutex.Unlock()
		if time.Since(read) < schedulersAge {
			return last
		}
		limited, cancel := context.WithTimeout(ctx, schedulersTimeout)
		defer cancel()
		last.Schedulers, last.Err = leases.Read(limited, client, namespace)
		if read = time.Now(); ctx.Err() != nil {
			read = time.Time{} // the question has ended, which says nothing about the Leases
		}
		return last
	}
}

// wait waits until nothing is followed any more.
func (p *pageSource) wait() {
	if p.watcher != nil {
		p.watcher.Wait()
	}
}

// Revision implements serve.Changes.
func (p *pageSource) Revision() (string, <-chan struct{}) {
	if p.watcher == nil {
		return "files", nil
	}
	return p.watcher.Revision()
}

// View implements [answers.Source].
func (p *pageSource) View(ctx context.Context) (*answers.View, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	// The objects may be newer than the revision. Then there is another revision soon.
	revision, _ := p.Revision()
	if p.last != nil && p.last.Revision == revision {
		return p.last, nil
	}
	view := &answers.View{Objects: p.files, Hub: p.filesHub, Origin: p.origin, Revision: revision}
	if p.watcher != nil {
		view.Live = true
		view.Objects = p.watcher.Objects()
		if p.files != nil {
			view.Objects = view.Objects.Overlay(p.files)
		}
		if view.Hub == nil {
			if err := p.readHub(ctx); err != nil {
				return nil, err
			}
			view.Hub = p.hub
			if p.hubWarning != "" {
				view.Objects.Warnings = append(view.Objects.Warnings, p.hubWarning)
			}
		}
	}
	p.last = view
	return view, nil
}

// readHub reads the objects of the hub from the watcher, if they have changed.
func (p *pageSource) readHub(ctx context.Context) error {
	version := p.watcher.OthersVersion()
	if version == p.hubVersion {
		return nil
	}
	p.hub, p.hubWarning, p.hubVersion = nil, "", version
	_, err := p.watcher.List(placementResource)
	hasHub := !apierrors.IsNotFound(err)
	hub, err := placements.ReadHub(ctx, func(resource schema.GroupVersionResource, namespace string) placements.Lister {
		return &lister{p.watcher, resource, namespace, hasHub}
	}, p.namespace, nil)
	switch {
	case err == nil:
		p.hub = hub
	case apierrors.IsNotFound(err):
		// The API server is no hub.
	case ctx.Err() != nil:
		p.hubVersion = ""
		return err
	default:
		p.hubWarning = fmt.Sprintf("Placements are not shown: %v", err)
	}
	return nil
}

// placementResource is the resource that makes an API server a hub.
var placementResource = schema.GroupVersion(clusterv1beta1.GroupVersion).WithResource("placements")

// lister lists objects that the watcher has read.
type lister struct {
	watcher   *watching.Watcher
	resource  schema.GroupVersionResource
	namespace string
	// hasHub is set if the API server has Placements. Then other kinds of a hub may be missing.
	hasHub bool
}

// List implements [placements.Lister].
func (l *lister) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := l.watcher.List(l.resource)
	switch {
	case apierrors.IsNotFound(err) && l.hasHub:
		return &unstructured.UnstructuredList{}, nil
	case err != nil:
		return nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(item unstructured.Unstructured) bool {
		return l.namespace != "" && item.GetNamespace() != l.namespace
	})
	return list, nil
}
