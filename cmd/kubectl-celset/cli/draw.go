// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cmd/kubectl-celset/draw"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/printable"
)

const drawLong = `Draw the devices of a node, or the nodes of a PodGroup.

The argument is one of the following:

- a node: the picture shows its devices, and the claims that use them
- a claim: the picture shows the node on which the claim has its devices
- a PodGroup with a node set constraint: the picture shows all nodes, and marks the nodes on which
  pods of the group run or would run

The position of a device comes from the first of these attributes that it has, in any domain:

- the attributes of --row and --column
- row and col
- x, y and z, or topology_x, topology_y and topology_z
- index

The attributes peers, peerList, neighbors and links are drawn as links. Devices without any of these
attributes are grouped by NUMA node and PCIe root. All other devices are drawn in order.

The position of a node comes from the coordinates that the constraint passes to nodes.box. If the
constraint counts distinct values of an attribute instead, nodes with the same value are grouped.

The default output is text. Use svg for documents, and json or yaml for the same data.
` + exitCodes

const drawExample = `  # Draw the devices of a node
  kubectl celset draw node/node-1

  # Draw the node of a claim as a picture for a document
  kubectl celset draw claim/ring -o svg > ring.svg

  # Draw the nodes of a group of pods
  kubectl celset draw podgroup/train

  # Use other attributes as coordinates
  kubectl celset draw node-1 --row rack.example.com/slot --column index`

func newDrawCommand(o *options) *cobra.Command {
	settings := draw.Options{}
	command := &cobra.Command{
		Use:     "draw NAME | node/NAME | claim/NAME | podgroup/NAME",
		Short:   "Draw devices and the claims that use them",
		Long:    drawLong,
		Example: drawExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			picture, err := o.picture(command.Context(), args, settings)
			if err != nil {
				return err
			}
			if o.output == "svg" {
				return picture.SVG(o.Out)
			}
			return o.data(picture, func(w io.Writer) error { return picture.Text(w, isColorful(w)) })(o.Out)
		},
	}
	o.addFlags(command, "svg", "json", "yaml")
	o.gates.addFlag(command.Flags(), o.ErrOut)
	command.Flags().StringVar(&settings.Row, "row", "", "Attribute with the row of a device, as NAME or DOMAIN/NAME.")
	command.Flags().StringVar(&settings.Col, "column", "", "Attribute with the column of a device, as NAME or DOMAIN/NAME.")
	return command
}

// picture draws the node, claim or group that the argument names.
func (o *options) picture(ctx context.Context, args []string, settings draw.Options) (*draw.Picture, error) {
	o.groups = isAboutGroup(args)
	state, err := o.state(ctx)
	if err != nil {
		return nil, err
	}
	settings.Features = o.gates.features()
	if o.groups {
		return o.groupPicture(ctx, state, args[0], settings.Features)
	}
	node, err := o.nodeOf(ctx, state, args[0], &settings)
	if err != nil {
		return nil, err
	}
	return draw.New(ctx, state, node, settings)
}

// nodeOf returns the node to draw. The argument names a node or a claim. For a claim, nodeOf returns the node of its devices,
// and sets settings.Claims.
func (o *options) nodeOf(ctx context.Context, state *clusterstate.State, argument string, settings *draw.Options) (*corev1.Node, error) {
	kind, name, err := clusterstate.Split(argument, clusterstate.NodeKind, clusterstate.ClaimKind, clusterstate.GroupKind)
	if err != nil {
		return nil, err
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil, err
	}
	node, claim := state.Node(name), state.Claim(namespace, name)
	switch {
	case kind == "" && node != nil && claim != nil:
		return nil, fmt.Errorf("a node and a claim have the name %q: write node/%s or claim/%s", name, name, name)
	case kind != clusterstate.ClaimKind && node != nil:
		return node, nil
	case kind == clusterstate.NodeKind || claim == nil:
		return nil, fmt.Errorf("there is no node %q and no claim of that name in namespace %q", name, namespace)
	case claim.Status.Allocation == nil:
		_, _ = fmt.Fprintf(o.ErrOut, "claim %s/%s has no devices yet: use \"kubectl celset explain\" to find out why\n", namespace, name)
		return nil, errNegative
	}
	settings.Claims = []*resourceapi.ResourceClaim{claim}
	return draw.NodeOf(ctx, state, claim, settings.Features)
}

// isColorful reports whether the output is a terminal and NO_COLOR is not set (no-color.org).
func isColorful(w io.Writer) bool {
	file, ok := printable.Unescaped(w).(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(file.Fd()))
}
