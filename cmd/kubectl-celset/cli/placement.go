// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
	"github.com/celset/celset/placement"
)

// placementsArgument is the argument that means all Placements of the namespace.
const placementsArgument = "placements"

// isAboutPlacements reports whether an argument names Placements.
func isAboutPlacements(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		kind, _, err := clusterstate.Split(arg, clusterstate.PlacementKind)
		return arg == placementsArgument || err == nil && kind == clusterstate.PlacementKind
	})
}

// hub reads Placements, and the objects that determine their decisions, from files or from the cluster.
func (o *options) hub(ctx context.Context) (*placements.Hub, error) {
	if err := o.checkFormat(); err != nil {
		return nil, err
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil, err
	}
	hub, err := o.readHub(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, warning := range hub.Warnings {
		_, _ = fmt.Fprintln(o.ErrOut, "warning:", warning)
	}
	return hub, nil
}

func (o *options) readHub(ctx context.Context, namespace string) (*placements.Hub, error) {
	if o.withCluster {
		return nil, fmt.Errorf("--with-cluster: can't be used for Placements, which are read either from files or from the hub: remove the flag")
	}
	if o.readsFiles() {
		documents, err := reading.Documents(o.files.ToOptions(), o.In)
		if err != nil {
			return nil, err
		}
		return placements.FromDocuments(documents, namespace)
	}
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	progress := o.newProgress("objects of the hub")
	defer progress.end()
	return placements.ReadHub(ctx, listers(client), namespace, progress.read)
}

func listers(client dynamic.Interface) func(schema.GroupVersionResource, string) placements.Lister {
	return func(resource schema.GroupVersionResource, namespace string) placements.Lister {
		if namespace == "" {
			return client.Resource(resource)
		}
		return client.Resource(resource).Namespace(namespace)
	}
}

// placementsOf returns the Placements that the arguments name.
func (o *options) placementsOf(ctx context.Context, args []string) (*placements.Hub, []*clusterv1beta1.Placement, error) {
	hub, err := o.hub(ctx)
	if err != nil {
		return nil, nil, err
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil, nil, err
	}
	var found []*clusterv1beta1.Placement
	for _, arg := range args {
		if arg == placementsArgument {
			found = append(found, hub.Placements()...)
			continue
		}
		_, name, err := clusterstate.Split(arg, clusterstate.PlacementKind)
		if err != nil {
			return nil, nil, err
		}
		object, err := hub.Placement(name, namespace)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, object)
	}
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("namespace %q has no Placements", namespace)
	}
	return hub, found, nil
}

// decide prints the clusters that a Placement would select. The command explain also prints the reasons.
func (f *fitOptions) decide(ctx context.Context, args []string) error {
	hub, found, err := f.placementsOf(ctx, args)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("there are %d Placements: name one of them as placement/NAME", len(found))
	}
	limited, cancel := placement.WithDeadline(ctx, f.timeout, f.timeout)
	defer cancel()
	var answer *placements.Answer
	f.newProgress(fmt.Sprintf("deciding over %d clusters", hub.Clusters())).during(func() {
		answer, err = hub.Decide(limited, found[0], time.Now(), placements.Options{Why: f.asked.Why, Clusters: f.managedClusters})
	})
	if err != nil {
		return err
	}
	return written(f.data(answer, answer.Print), f.Out, answer.Positive())
}

// passedOverAs lists the kinds that only commands about Placements read. Each entry is the middle of a description "FILE: KIND
// NAME" of an ignored document.
var passedOverAs = []string{": Placement ", ": PlacementDecision ", ": ManagedCluster ", ": ManagedClusterSet ", ": ManagedClusterSetBinding ", ": AddOnPlacementScore "}

// filesHavePlacements reports whether the files contain Placements. It buffers stdin, so that the command can read stdin again
// afterwards.
func (o *options) filesHavePlacements() (bool, error) {
	if !o.readsFiles() || o.withCluster {
		return false, nil
	}
	if slices.Contains(*o.files.Filenames, "-") {
		input, err := reading.All(o.In, "stdin")
		if err != nil {
			return false, err
		}
		o.In = &again{input: input}
	}
	documents, err := reading.Documents(o.files.ToOptions(), o.In)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(documents, func(d clusterstate.Document) bool {
		return d.Object.GroupVersionKind() == schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement")
	}), nil
}

// again is a reader of a buffer. After it has returned EOF, the next read starts at the beginning again.
type again struct {
	input []byte
	read  int
}

// Read implements [io.Reader].
func (a *again) Read(into []byte) (int, error) {
	if a.read == len(a.input) {
		a.read = 0
		return 0, io.EOF
	}
	n := copy(into, a.input[a.read:])
	a.read += n
	return n, nil
}

// placementReport lists the mistakes in Placements.
type placementReport struct {
	output.Meta
	Placements []placements.Verdict `json:"placements"`
}

// checkPlacements prints errors and warnings of Placements. If strict is set, a warning makes the answer negative, too.
func (o *options) checkPlacements(ctx context.Context, args []string, strict bool) error {
	hub, found, err := o.placementsOf(ctx, args)
	if err != nil {
		return err
	}
	verdicts, err := placements.Check(ctx, found)
	if err != nil {
		return err
	}
	for i := range verdicts {
		if err := hub.Evaluate(ctx, found[i], &verdicts[i], time.Now()); err != nil {
			return err
		}
	}
	isValid := !slices.ContainsFunc(verdicts, func(v placements.Verdict) bool { return len(v.Errors) > 0 || strict && len(v.Warnings) > 0 })
	report := placementReport{output.NewMeta(output.PlacementReport), verdicts}
	return written(o.data(report, report.print), o.Out, isValid)
}

func (r placementReport) print(w io.Writer) error {
	var b strings.Builder
	indented := func(what string, texts []string) {
		for _, text := range texts {
			fmt.Fprintf(&b, "  %s: %s\n", what, strings.ReplaceAll(text, "\n", "\n    "))
		}
	}
	for _, verdict := range r.Placements {
		fmt.Fprintf(&b, "Placement %s\n", verdict.Placement)
		indented("error", verdict.Errors)
		indented("warning", verdict.Warnings)
		if len(verdict.Errors)+len(verdict.Warnings) == 0 {
			fmt.Fprintln(&b, "  valid")
		}
		if len(verdict.Selected) > 0 {
			fmt.Fprintf(&b, "  selects %d of %d clusters: %s\n", len(verdict.Selected), *verdict.Clusters, strings.Join(verdict.Selected, ", "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
