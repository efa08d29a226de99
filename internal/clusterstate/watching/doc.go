// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watching keeps the objects that package reading reads from a cluster up to date by watches. It never changes a cluster.
//
//	w, err := watching.Start(ctx, config, watching.Options{Namespace: "default"})
//	err = w.Synced(ctx)
//	objects := w.Objects()
//	revision, changed := w.Revision()
//	<-changed // the objects have changed
//	w.Wait()  // after ctx has ended
//
// Each kind is followed on its own. If RBAC forbids a kind in all namespaces, only one namespace is followed. If RBAC forbids
// that, too, the kind is missing from the objects, a warning has the error, and the kind is tried again after [Options.Retry].
// A kind that the API server lacks is missing without a warning, and is also tried again.
//
// The revision changes at most every half second. Nothing is computed for a new revision before the next call of [Watcher.Objects].
package watching
