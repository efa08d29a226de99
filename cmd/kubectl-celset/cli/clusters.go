// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/clusterstate/reading"
)

// inClusters runs the command for one cluster of --contexts after the other, and prints each answer at once. If a cluster can't
// be reached, its answer is "unknown".
func (f *fitOptions) inClusters(ctx context.Context, flags *pflag.FlagSet, args []string) error {
	if isAboutGroup(args) || isAboutPlacements(args) {
		return errors.New("--contexts: applies only to pods and claims: use --context for one cluster")
	}
	if len(f.clusters) == 0 || slices.Contains(f.clusters, "") {
		// kubectl would use the current context for an empty name.
		return errors.New("--contexts: a name is empty: use the names of contexts of the kubeconfig")
	}
	if err := f.checkFormat(); err != nil {
		return err
	}
	var input []byte
	if slices.Contains(*f.files.Filenames, "-") {
		var err error
		if input, err = reading.All(f.In, "stdin"); err != nil {
			return err
		}
	}
	fits, unknown := false, ""
	for i, name := range f.clusters {
		report, err := f.of(name, input).report(ctx, flags, args)
		if err != nil {
			report = &fit.Report{Meta: output.NewMeta(output.Explanation), Error: err.Error(), Nodes: []*explain.Explanation{}}
			unknown = name
		}
		report.Cluster = name
		if f.output == "yaml" && i > 0 {
			_, _ = fmt.Fprintln(f.Out, "---")
		}
		text := report.Print
		if !f.asked.Why {
			text = report.PrintShort
		}
		if err := f.data(report, text)(f.Out); err != nil {
			return err
		}
		fits = fits || report.Fits()
		if report.Incomplete != "" {
			unknown = name
		}
	}
	if !fits && unknown != "" {
		return fmt.Errorf("the claims fit in none of the clusters that answered, and cluster %s did not answer", unknown)
	}
	return ended(nil, "", fits)
}

// of returns the options for the cluster of a context of the kubeconfig. The command then tries the claims from files on that
// cluster's devices. input is the content of stdin.
func (f *fitOptions) of(cluster string, input []byte) *fitOptions {
	one, o := *f, *f.options
	config := newConfigFlags()
	config.KubeConfig, config.Namespace, config.Timeout, config.CacheDir = f.config.KubeConfig, f.config.Namespace, f.config.Timeout, f.config.CacheDir
	config.Impersonate, config.ImpersonateGroup, config.ImpersonateUID = f.config.Impersonate, f.config.ImpersonateGroup, f.config.ImpersonateUID
	config.ImpersonateUserExtra = f.config.ImpersonateUserExtra
	config.Context = &cluster
	o.config, o.gates, o.In, o.withCluster = config, gates{f.gates.DeepCopy()}, bytes.NewReader(input), f.readsFiles()
	one.options, one.clusters = &o, nil
	return &one
}
