// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watching

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/celset/celset/internal/clusterstate/reading"
)

const (
	// slowly is the default of [Options.Retry].
	slowly = time.Minute
	// soon and late limit the time until a kind is tried again after other errors. The time doubles with each error.
	soon, late = time.Second, 30 * time.Second
	// inNamespace is the time after which a kind that is followed in one namespace is tried in all namespaces again.
	inNamespace = 10 * time.Minute
)

// kind follows the objects of one kind.
type kind struct {
	reading.Kind
	*store
	// namespace is followed if RBAC forbids all namespaces. It is empty for kinds without namespaces.
	namespace string
	// only is set if no other namespace is followed.
	only bool
	// missing reports whether the API server lacks an optional kind.
	missing func() (bool, error)
	// retry is [Options.Retry].
	retry time.Duration

	// tried is closed after the first try.
	tried     chan struct{}
	triedOnce sync.Once
	mutex     sync.Mutex
	state     state
}

// state is the result of the last try to follow a kind.
type state struct {
	// absent is set if the API server lacks the kind.
	absent bool
	// everywhere is the error of the request in all namespaces. It is set if only one namespace is followed.
	everywhere error
	// list is the error of the last list, and watch the error of the last watch.
	list, watch error
}

func (k *kind) set(s state) {
	k.mutex.Lock()
	former := k.state
	k.state = s
	k.mutex.Unlock()
	if fmt.Sprint(former) != fmt.Sprint(s) {
		k.changed()
	}
	k.triedOnce.Do(func() { close(k.tried) })
}

func (k *kind) current() state {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.state
}

// run follows the kind until ctx ends.
func (k *kind) run(ctx context.Context) {
	delay := soon
	for ctx.Err() == nil {
		began := time.Now()
		pause := k.try(ctx)
		switch {
		case pause > 0:
			delay = soon
		case time.Since(began) > late:
			pause, delay = soon, soon
		default:
			pause, delay = delay, min(2*delay, late)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// try follows the kind until an error occurs. It returns the time until the next try, or 0 for a short time.
func (k *kind) try(ctx context.Context) (pause time.Duration) {
	if k.Optional {
		if missing, err := k.missing(); err == nil && missing {
			k.clear()
			k.set(state{absent: true})
			return k.retry
		}
	}
	if k.only {
		return k.follow(ctx, k.namespace, nil)
	}
	pause = k.follow(ctx, metav1.NamespaceAll, nil)
	everywhere := k.current().list
	if k.namespace == "" || !apierrors.IsForbidden(everywhere) {
		return pause
	}
	limited, cancel := context.WithTimeout(ctx, inNamespace)
	defer cancel()
	return k.follow(limited, k.namespace, everywhere)
}

// follow lists and watches the kind in a namespace. everywhere is the error in all namespaces, or nil.
func (k *kind) follow(ctx context.Context, namespace string, everywhere error) (pause time.Duration) {
	lists := &listWatch{kind: k, namespace: namespace, everywhere: everywhere}
	reflector := cache.NewReflectorWithOptions(lists, nil, lists, cache.ReflectorOptions{Name: k.Name, TypeDescription: k.Name})
	err := reflector.ListAndWatchWithContext(ctx)
	if ctx.Err() != nil || err == nil {
		return 0
	}
	if lists.failed != nil {
		// The reflector adds text to the error.
		err = lists.failed
	}
	if lists.listed {
		k.set(state{everywhere: everywhere, watch: err})
		if apierrors.IsForbidden(err) {
			return k.retry
		}
		return 0
	}
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		// With a namespace to fall back to, the objects of a former list in the namespace stay until the next list.
		if namespace != metav1.NamespaceAll || k.namespace == "" {
			k.clear()
		}
		pause = k.retry
	}
	if namespace == metav1.NamespaceAll && k.namespace != "" && apierrors.IsForbidden(err) {
		// The caller tries the namespace next.
		k.mutex.Lock()
		k.state.list = err
		k.mutex.Unlock()
		return pause
	}
	k.set(state{absent: k.Optional && apierrors.IsNotFound(err), everywhere: everywhere, list: err})
	return pause
}

// listWatch is the connection of a reflector to the API server and to the store. It records whether lists and watches succeed.
// A reflector calls its methods one after the other.
type listWatch struct {
	*kind
	namespace  string
	everywhere error
	// listed is set after the store got all objects. watched is set if the last watch succeeded.
	listed, watched bool
	// failed is the error of the last request, or nil.
	failed error
}

var (
	_ cache.ListerWatcherWithContext = &listWatch{}
	_ cache.TransformingStore        = &listWatch{}
)

// List implements [cache.ListerWatcher].
func (l *listWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch implements [cache.ListerWatcher].
func (l *listWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// ListWithContext implements [cache.ListerWatcherWithContext].
func (l *listWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := l.kind.List(ctx, l.namespace, options)
	l.failed = err
	return list, err
}

// WatchWithContext implements [cache.ListerWatcherWithContext].
func (l *listWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := l.kind.Watch(ctx, l.namespace, options)
	l.watched, l.failed = err == nil, err
	if l.watched && l.listed {
		l.set(state{everywhere: l.everywhere})
	}
	return events, err
}

// Replace implements [cache.ReflectorStore]. The reflector calls it with the objects of a list, or with those at the beginning of
// a watch.
func (l *listWatch) Replace(all []any, version string) error {
	err := l.store.Replace(all, version)
	if err != nil {
		return err
	}
	l.listed = true
	s := state{everywhere: l.everywhere}
	if !l.watched {
		// Until a watch succeeds, the error of the last watch stays.
		s.watch = l.current().watch
	}
	l.set(s)
	return nil
}
