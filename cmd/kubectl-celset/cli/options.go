// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
)

// options holds the options that all commands share. Each command has its own copy.
type options struct {
	genericiooptions.IOStreams
	config        *genericclioptions.ConfigFlags
	files         *genericclioptions.FileNameFlags
	withCluster   bool
	allNamespaces bool
	// needsDevices is set if the command needs devices. If the files have neither nodes nor devices, the command then also
	// reads the cluster. withoutCluster is set by --with-cluster=false and prevents that.
	needsDevices, withoutCluster bool
	// groups makes the command read the cluster's PodGroups. running makes it read scheduled pods of all namespaces, and
	// PodGroups if any of the pods is in a group.
	groups, running bool
	// reportsAttributes is set if the answer has the mistakes of DeviceAttributes objects, so that no warning is needed.
	reportsAttributes bool
	output            string
	// selector is the label selector of -l, or "".
	selector string
	formats  []string
	gates    gates
}

func newOptions(streams genericiooptions.IOStreams) *options {
	return &options{
		IOStreams: streams,
		gates:     newGates(),
		config:    newConfigFlags(),
		files: &genericclioptions.FileNameFlags{
			Usage:     "Files, directories or URLs to read instead of the cluster. Use - for the standard input.",
			Filenames: &[]string{},
			Kustomize: ptr.To(""),
			Recursive: ptr.To(false),
		},
	}
}

// newConfigFlags returns kubectl's connection flags, with kubectl's client-side rate limits.
func newConfigFlags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS, config.Burst = 50, 300
		return config
	}
	return flags
}

// addFlags adds the flags that select the input, and -o with the given output formats.
func (o *options) addFlags(command *cobra.Command, formats ...string) {
	o.addInput(command.Flags())
	o.formats = formats
	command.Flags().StringVarP(&o.output, "output", "o", "", "Output format: one of "+strings.Join(formats, ", ")+".")
}

// addInput adds the flags that select the input.
func (o *options) addInput(flags *pflag.FlagSet) {
	o.config.AddFlags(flags)
	o.files.AddFlags(flags)
	flags.BoolVar(&o.withCluster, "with-cluster", false,
		"With -f, also read the cluster. An object in a file replaces the object of the cluster with the same name. The default of simulate, explain and serve is true if the files have neither Nodes nor ResourceSlices.")
}

// addSelector adds the flag -l. The help text says that it selects usage, for example "pods".
func (o *options) addSelector(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&o.selector, "selector", "l", "", usage)
}

// selects returns a function that reports whether an object matches the selector of -l.
func (o *options) selects() (func(metav1.Object) bool, error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector %q: %w", o.selector, err)
	}
	return func(object metav1.Object) bool { return selector.Matches(labels.Set(object.GetLabels())) }, nil
}

func (o *options) readsFiles() bool {
	return len(*o.files.Filenames) > 0 || *o.files.Kustomize != ""
}

// checkFormat rejects an unknown output format before the command reads any object.
func (o *options) checkFormat() error {
	if o.output != "" && !slices.Contains(o.formats, o.output) {
		return fmt.Errorf("--output %q: must be one of %s", o.output, strings.Join(o.formats, ", "))
	}
	return nil
}

// checkInput rejects --with-cluster without files.
func (o *options) checkInput() error {
	if o.withCluster && !o.readsFiles() {
		return errors.New("--with-cluster: can be used only with -f: add -f, or remove --with-cluster")
	}
	return nil
}

// namespace returns the namespace from the flag --namespace or, without the flag, from the kubeconfig context.
func (o *options) namespace() (string, error) {
	namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// state reads objects from files, from the cluster, or from both, and prints warnings about them.
func (o *options) state(ctx context.Context) (*clusterstate.State, error) {
	if err := errors.Join(o.checkFormat(), o.checkInput()); err != nil {
		return nil, err
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil, err
	}
	objects := &clusterstate.Objects{}
	if o.readsFiles() {
		if objects, err = reading.Files(o.files.ToOptions(), o.In, namespace); err != nil {
			return nil, err
		}
		o.followFiles(objects)
	}
	if !o.readsFiles() || o.withCluster {
		inCluster, err := o.readCluster(ctx, namespace)
		if err != nil {
			return nil, err
		}
		if o.readsFiles() {
			inCluster = inCluster.Overlay(objects)
		}
		objects = inCluster
	}
	objects.LimitQuantities()
	if err := objects.Enrich(ctx); err != nil {
		return nil, err
	}
	if !o.reportsAttributes {
		objects.WarnOfAttributes()
	}
	for _, warning := range objects.Warnings {
		_, _ = fmt.Fprintln(o.ErrOut, "warning:", warning)
	}
	return clusterstate.New(objects), nil
}

// followFiles makes the command also read the cluster if the files have neither nodes nor devices. The command then tries the
// claims from the files on the cluster's devices. Without a kubeconfig, followFiles prints a warning instead.
func (o *options) followFiles(inFiles *clusterstate.Objects) {
	if !o.needsDevices || o.withCluster || o.withoutCluster || len(inFiles.Slices)+len(inFiles.Nodes) > 0 {
		return
	}
	raw, err := o.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil || len(raw.Clusters) == 0 {
		inFiles.Warnings = append(inFiles.Warnings, "the files have neither Nodes nor ResourceSlices, and there is no kubeconfig, so no devices are known: add ResourceSlices with -f, or set --kubeconfig")
		return
	}
	_, _ = fmt.Fprintln(o.ErrOut, "The files have neither Nodes nor ResourceSlices, so the cluster is read, too. To read only files, set --with-cluster=false.")
	o.withCluster = true
}

func (o *options) readCluster(ctx context.Context, namespace string) (*clusterstate.Objects, error) {
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if err := o.gates.follow(ctx, client.Discovery()); err != nil {
		return nil, err
	}
	if o.allNamespaces {
		namespace = ""
	}
	defer o.announce("reading the cluster")()
	objects, err := reading.Cluster(ctx, client, namespace)
	if err == nil {
		err = reading.AddAttributes(ctx, objects, client.Discovery().RESTClient())
	}
	if err == nil && (o.groups || o.running && slices.ContainsFunc(objects.Pods, func(pod *corev1.Pod) bool { return pod.Spec.SchedulingGroup != nil })) {
		err = reading.AddGroups(ctx, objects, client, namespace)
	}
	if err == nil && o.running {
		err = reading.AddRunning(ctx, objects, client)
	}
	return objects, err
}

// data returns a function that prints data in the chosen format, or as text if no format is chosen.
func (o *options) data(data any, text func(io.Writer) error) func(io.Writer) error {
	switch o.output {
	case "json":
		return func(w io.Writer) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			encoder.SetEscapeHTML(false)
			return encoder.Encode(data)
		}
	case "yaml":
		return func(w io.Writer) error {
			raw, err := yaml.Marshal(data)
			if err != nil {
				return err
			}
			_, err = w.Write(raw)
			return err
		}
	default:
		return text
	}
}
