// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cdi gives containers information about their devices through the Container Device Interface. It writes a file per
// claim into a directory that the container runtime reads, with one CDI device for each device of the claim. Because the
// devices don't exist, a CDI device only adds an environment variable to a container:
//
//	CELSET_DEVICE_MLA_EXAMPLE_COM__MLA_2=driver=mla.example.com pool=node-1 device=mla-2 index=2
//
// Each device has its own variable. A container may use several claims. If two CDI devices set the same variable, the container
// would see only one of them.
//
//	specs, err := cdi.NewDirectory("/var/run/cdi", "mla.example.com")
//	ids, err := specs.Write(claimUID, devices)   // hand these to the kubelet
//	err = specs.Remove(claimUID)
//
// See https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md.
package cdi
