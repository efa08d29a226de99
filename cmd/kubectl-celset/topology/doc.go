// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology translates descriptions of machines into DeviceAttributes objects: the output of tools of vendors, a ConfigMap
// of topograph, or a table in CSV.
//
//	objects, warnings, err := topology.Read("nvidia-smi", file, topology.Options{Name: "hgx"})
//	err = topology.Write(os.Stdout, objects)
//
// A description of a machine applies to all nodes of its kind, which the node selector selects. Each attribute of an object is
// described at the function of its format. Errors contain the line of the input, if the format has lines.
package topology
