// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/cmd/kubectl-celset/topology"
)

const topologyLong = `Translate descriptions of machines into DeviceAttributes objects.

A DeviceAttributes object adds attributes to devices whose driver does not publish them. Schedulers
with celset read the devices as if the driver had published the attributes.`

const topologyFromLong = `Translate a description of a machine into a DeviceAttributes object, as YAML on the standard output.

The formats are:

  nvidia-smi  the output of "nvidia-smi topo -m": links, NUMA node, PCIe switch and nearest NICs of
              each GPU. GPUs are identified by the names gpu-0, gpu-1 and so on. If the output of
              "nvidia-smi --query-gpu=index,pci.bus_id --format=csv" precedes the matrix, they are
              identified by their PCI address.
  neuron-ls   the output of "neuron-ls --json-output": connected devices and NUMA node
  topograph   a ConfigMap of topograph: rails of NICs and GPUs, or blocks and switches of nodes
  csv         a table. The first line names the columns: the key of the devices, and attributes. A
              type may follow a name, as in links:strings. The types are int, bool, string, version,
              ints, bools, strings and versions. Semicolons separate the values of a list

The object applies to all nodes with the driver. Use --node-selector if the machines differ. Read
the object before you apply it, and check it with "kubectl celset check -f".

Exit codes:
  0  the object is written
  2  the input is malformed, or the usage is wrong`

const topologyFromExample = `  # The links between the GPUs of this machine
  nvidia-smi topo -m | kubectl celset topology from nvidia-smi - --name hgx > hgx.yaml

  # The same, if GPUs are identified by their PCI address
  (nvidia-smi --query-gpu=index,pci.bus_id --format=csv; nvidia-smi topo -m) |
    kubectl celset topology from nvidia-smi - > hgx.yaml

  # Coordinates from a table, for the nodes with a label
  kubectl celset topology from csv galaxy.csv --driver tenstorrent.com --node-selector machine=galaxy

  # Rails that topograph found
  kubectl get configmap -n topograph topograph-nic-rails -o yaml | kubectl celset topology from topograph -`

func newTopologyCommand(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "topology",
		Short: "Translate descriptions of machines into DeviceAttributes objects",
		Long:  topologyLong,
		RunE: func(command *cobra.Command, _ []string) error {
			return command.Help()
		},
		Args: cobra.NoArgs,
	}
	command.AddCommand(newTopologyFromCommand(o))
	return command
}

func newTopologyFromCommand(o *options) *cobra.Command {
	settings, selector := topology.Options{}, ""
	command := &cobra.Command{
		Use:       "from FORMAT FILE",
		Short:     "Translate the output of a tool, a ConfigMap of topograph or a table",
		Long:      topologyFromLong,
		Example:   topologyFromExample,
		Args:      cobra.ExactArgs(2),
		ValidArgs: topology.Formats(),
		RunE: func(_ *cobra.Command, args []string) error {
			if selector != "" {
				var err error
				if settings.NodeSelector, err = metav1.ParseToLabelSelector(selector); err != nil {
					return fmt.Errorf("--node-selector %q: %w", selector, err)
				}
			}
			return o.topologyFrom(args[0], args[1], settings)
		},
	}
	flags := command.Flags()
	flags.StringVar(&settings.Name, "name", "", "Name of the object. The default is the format.")
	flags.StringVar(&settings.Driver, "driver", "", "Driver that publishes the devices. The default is gpu.nvidia.com, neuron.aws.com or dra.net, according to the format. For csv, the flag is required.")
	flags.StringVar(&settings.Domain, "domain", "", "Domain of the attributes. The default is topology.celset.dev.")
	flags.StringVar(&settings.Key, "key", "", "Attribute that identifies a device, as DOMAIN/NAME, or name for the name of the device. The default depends on the format.")
	flags.StringVar(&selector, "node-selector", "", "Label selector of the nodes that the input describes. The default is all nodes.")
	flags.StringVar(&settings.Links, "links", "",
		"For nvidia-smi, the longest path between two GPUs that counts as a link: one of "+strings.Join(topology.LinkKinds(), ", ")+". The default is nvlink, or PHB if the machine has no NVLink.")
	return command
}

func (o *options) topologyFrom(format, name string, settings topology.Options) error {
	from := o.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	objects, warnings, err := topology.Read(format, from, settings)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, warning := range warnings {
		_, _ = fmt.Fprintln(o.ErrOut, "warning:", warning)
	}
	return topology.Write(o.Out, objects)
}
