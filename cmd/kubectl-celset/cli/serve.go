// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/serve"
)

const serveLong = `Show nodes, devices, claims, PodGroups and Placements on a web page, explain why pods wait, and try claims.

The command prints the URL of the page, and serves the page until you press Ctrl+C. The page follows
the cluster with your rights, and changes nothing. It shows the objects of all namespaces. If you may
not list a kind in all namespaces, the page shows a warning, and only the objects of one namespace:
the namespace of --namespace or of the context.

The server listens only on the loopback interface. Browsers need the token in the URL, so keep the
URL secret. To open the page on another machine, forward the port with "ssh -L", under the same number.

With -f, the page shows the objects in the files. It does not read the files again.
`

const serveExample = `  # Show the page about the cluster
  kubectl celset serve

  # Show only the pods, claims and groups of one namespace
  kubectl celset serve --namespace team-a

  # Show the devices in files
  kubectl celset serve -f nodes.yaml -f slices.yaml -f classes.yaml

  # Show the page of a remote machine: run the commands there and here
  kubectl celset serve --port 8700
  ssh -L 8700:127.0.0.1:8700 user@machine`

// serveTimeout is the time limit for a question of the page.
const serveTimeout = 45 * time.Second

// serveOptions holds the options of serve.
type serveOptions struct {
	*options
	address string
	port    int
	// schedulers is the namespace of the Leases on which schedulers publish their profiles.
	schedulers string
	// only is set if the page shows only one namespace.
	only bool
}

func newServeCommand(o *options) *cobra.Command {
	s := &serveOptions{options: o}
	command := &cobra.Command{
		Use:     "serve",
		Short:   "Show devices and pods on a web page",
		Long:    serveLong,
		Example: serveExample,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			s.only = command.Flags().Changed("namespace") && !s.allNamespaces
			s.needsDevices, s.withoutCluster = true, command.Flags().Changed("with-cluster") && !s.withCluster
			return s.run(command.Context())
		},
	}
	flags := command.Flags()
	o.addInput(flags)
	o.gates.addFlag(flags, o.ErrOut)
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show the objects of all namespaces, even with --namespace. Objects in files without a namespace still get the namespace of --namespace.")
	flags.IntVar(&s.port, "port", 0, "Port of the page. 0 means any free port.")
	flags.StringVar(&s.address, "address", "127.0.0.1", "Address of the page: 127.0.0.1, ::1 or localhost.")
	flags.StringVar(&s.schedulers, "scheduler-namespace", metav1.NamespaceSystem, "Namespace of the Leases in which celset-schedulers publish their profiles.")
	_ = command.RegisterFlagCompletionFunc("address", cobra.FixedCompletions([]string{"127.0.0.1", "::1", "localhost"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// questions lists the questions that the page may ask.
var questions = []string{answers.Overview, answers.Node, answers.Explain, answers.Try, answers.Placement, answers.Complete}

func (s *serveOptions) run(ctx context.Context) error {
	// The port is tested first, because reading a large cluster takes some time.
	listener, err := serve.Listen(ctx, s.address, s.port)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	from, err := s.source(ctx)
	if from != nil {
		defer from.wait()
	}
	defer cancel()
	if err != nil {
		return err
	}
	view, err := from.View(ctx)
	if err != nil {
		return err
	}
	for _, warning := range slices.Concat(view.Warnings, view.Objects.Warnings) {
		_, _ = fmt.Fprintln(s.ErrOut, "warning:", warning)
	}
	namespace, err := s.namespace()
	if err != nil {
		return err
	}
	options := answers.Options{Features: s.gates.features(), Timeout: serveTimeout, Namespace: namespace}
	if from.schedulers != nil {
		options.Served = from.schedulers.get
	}
	server, err := serve.New(listener, serve.Options{
		Answers: answers.New(from, options),
		Changes: from, Names: questions, Log: s.ErrOut,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.Out, "The page about %s is at\n\n  %s\n\nPress Ctrl+C to stop.\n", view.Origin, server.URL()); err != nil {
		return err
	}
	return server.Run(ctx)
}
