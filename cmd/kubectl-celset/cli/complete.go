// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	draclient "k8s.io/dynamic-resource-allocation/client"

	"github.com/celset/celset/internal/clusterstate"
)

// CompleteName is the name of the program that kubectl runs to complete arguments of this plugin. The user installs it as a
// link to the plugin.
const CompleteName = "kubectl_complete-celset"

const (
	// completeTimeout limits the request to the cluster. completeLimit is the maximum number of names to read.
	completeTimeout = 2 * time.Second
	completeLimit   = 500
)

// names is a function that lists the names of the objects of one kind in a namespace.
type names func(ctx context.Context, client kubernetes.Interface, namespace string, options metav1.ListOptions) (runtime.Object, error)

var namesOf = map[string]names{
	clusterstate.PodKind: func(ctx context.Context, client kubernetes.Interface, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(namespace).List(ctx, options)
	},
	clusterstate.NodeKind: func(ctx context.Context, client kubernetes.Interface, _ string, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Nodes().List(ctx, options)
	},
	clusterstate.ClaimKind: func(ctx context.Context, client kubernetes.Interface, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		return draclient.New(client).ResourceClaims(namespace).List(ctx, options)
	},
	clusterstate.TemplateKind: func(ctx context.Context, client kubernetes.Interface, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		return draclient.New(client).ResourceClaimTemplates(namespace).List(ctx, options)
	},
	clusterstate.GroupKind: func(ctx context.Context, client kubernetes.Interface, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		return client.SchedulingV1beta1().PodGroups(namespace).List(ctx, options)
	},
	namespaceKind: func(ctx context.Context, client kubernetes.Interface, _ string, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Namespaces().List(ctx, options)
	},
	clusterstate.ClassKind: func(ctx context.Context, client kubernetes.Interface, _ string, options metav1.ListOptions) (runtime.Object, error) {
		return draclient.New(client).DeviceClasses().List(ctx, options)
	},
}

// namespaceKind is the kind of the values of --namespace. It is not completed in arguments.
const namespaceKind = "namespace"

// argumentKinds maps a command to the kinds of its arguments. flagKinds maps a flag to the kind of its value.
var (
	argumentKinds = map[string][]string{
		"check":    {clusterstate.ClaimKind, clusterstate.TemplateKind, clusterstate.ClassKind, clusterstate.GroupKind},
		"draw":     {clusterstate.NodeKind, clusterstate.ClaimKind, clusterstate.GroupKind},
		"explain":  {clusterstate.PodKind, clusterstate.ClaimKind, clusterstate.TemplateKind, clusterstate.GroupKind},
		"simulate": {clusterstate.PodKind, clusterstate.ClaimKind, clusterstate.TemplateKind, clusterstate.GroupKind},
	}
	flagKinds = map[string]string{"node": clusterstate.NodeKind, "class": clusterstate.ClassKind, namespaceKind: namespaceKind, "scheduler-namespace": namespaceKind}
)

// addCompletion registers shell completion for the arguments and flags of a command.
func (o *options) addCompletion(command *cobra.Command) {
	if kinds := argumentKinds[command.Name()]; kinds != nil {
		command.ValidArgsFunction = o.complete(kinds...)
	}
	for flag, kind := range flagKinds {
		if command.Flags().Lookup(flag) != nil {
			_ = command.RegisterFlagCompletionFunc(flag, o.completeName(kind))
		}
	}
	if command.Flags().Lookup("output") != nil {
		_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp))
	}
}

// complete returns a function that completes arguments of the form "kind/name" for the given kinds.
func (o *options) complete(kinds ...string) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		kind, _, hasName := strings.Cut(typed, "/")
		if !hasName {
			var prefixes []string
			for _, kind := range kinds {
				if strings.HasPrefix(kind, typed) {
					prefixes = append(prefixes, kind+"/")
				}
			}
			return prefixes, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		of, _, err := clusterstate.Split(kind+"/any", kinds...)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.namesWith(command.Context(), of, kind+"/", typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeName returns a function that completes the name of an object of the kind.
func (o *options) completeName(kind string) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return o.namesWith(command.Context(), kind, "", typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesWith returns prefix+name for the objects of a kind, as far as the result starts with the typed text. It ignores errors,
// because a completion can't show them.
func (o *options) namesWith(ctx context.Context, kind, prefix, typed string) []string {
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	list, err := namesOf[kind](ctx, client, namespace, metav1.ListOptions{Limit: completeLimit})
	if err != nil {
		return nil
	}
	var found []string
	_ = meta.EachListItem(list, func(object runtime.Object) error {
		if accessor, err := meta.Accessor(object); err == nil && strings.HasPrefix(prefix+accessor.GetName(), typed) {
			found = append(found, prefix+accessor.GetName())
		}
		return nil
	})
	return found
}
