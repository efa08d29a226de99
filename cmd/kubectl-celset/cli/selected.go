// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/celset/celset/internal/clusterstate"
)

// reportOnSelected prints a report for each pod that matches the selector of -l, sorted by name. The exit code is the worst of
// all reports' exit codes.
func (f *fitOptions) reportOnSelected(ctx context.Context, flags *pflag.FlagSet, state *clusterstate.State) error {
	pods, err := f.selectedPods(state)
	if err != nil {
		return err
	}
	var worst error
	for i, pod := range pods {
		switch {
		case i == 0 || f.output == "json":
		case f.output == "yaml":
			_, _ = fmt.Fprintln(f.Out, "---")
		default:
			_, _ = fmt.Fprintln(f.Out)
		}
		report, err := f.reportOn(ctx, flags, state, []string{clusterstate.PodKind + "/" + pod.Name})
		if err != nil {
			return err
		}
		err = ended(f.data(report, report.Print)(f.Out), report.Incomplete, report.Fits())
		if err != nil && !errors.Is(err, errNegative) && !errors.Is(err, errIncomplete) {
			return err
		}
		if worst == nil || errors.Is(err, errIncomplete) {
			worst = err
		}
	}
	return worst
}

// selectedPods returns the pods of the namespace that match the selector and need devices.
func (f *fitOptions) selectedPods(state *clusterstate.State) ([]*corev1.Pod, error) {
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	selects, err := f.selects()
	if err != nil {
		return nil, err
	}
	var result []*corev1.Pod
	for _, pod := range state.Pods {
		if pod.Namespace != namespace || !selects(pod) {
			continue
		}
		subject, err := state.Subject(clusterstate.PodKind+"/"+pod.Name, namespace)
		if err != nil {
			return nil, err
		}
		if len(subject.Claims) > 0 || subject.Missing != nil {
			result = append(result, pod)
		}
	}
	if len(result) == 0 {
		return nil, fmt.Errorf("--selector %q: no pod with these labels in namespace %s needs devices", f.selector, namespace)
	}
	slices.SortFunc(result, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return result, nil
}
