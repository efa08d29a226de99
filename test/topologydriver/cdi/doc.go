// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cdi tells containers which devices they have, through the Container Device
// Interface: a file per claim in a directory that the container runtime reads, with one
// CDI device for each device of the claim. Devices of topologies don't exist, so all that
// a CDI device adds to a container is an environment variable of its own:
//
//	CELSET_DEVICE_MLA_EXAMPLE_COM__MLA_2=driver=mla.example.com pool=node-1 device=mla-2 index=2
//
// One variable for each device, and not one for all: a container may refer to several
// claims, or to some requests of one, and of two CDI devices that set the same variable
// the container would see one.
//
//	specs, err := cdi.NewDirectory("/var/run/cdi", "mla.example.com")
//	ids, err := specs.Write(claimUID, devices)   // hand these to the kubelet
//	err = specs.Remove(claimUID)
//
// See https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md.
package cdi
