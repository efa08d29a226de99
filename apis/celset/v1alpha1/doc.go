// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 defines CELDeviceConstraint, a CEL expression over the set
// of devices allocated for a claim (KEP-5254), and how it is written into
// ResourceClaims, ResourceClaimTemplates and DeviceClasses of an unmodified
// Kubernetes API server. It defines [CELDevicePreference] and
// [CELNodeSetConstraint], too.
//
// A constraint has two parts. The definition is an opaque configuration for
// the driver [DriverName] whose parameters are a [CELDeviceConstraint]. The
// reference is an entry of the claim's constraints whose matchAttribute is
// celset.dev/<name>. A definition stands in the claim itself or in a
// DeviceClass of one of the requests that the reference covers:
//
//	constraints:
//	- requests: [mla]
//	  matchAttribute: celset.dev/ring4    # the reference
//	config:
//	- opaque:
//	    driver: celset.dev                # the definition
//	    parameters:
//	      apiVersion: celset.dev/v1alpha1
//	      kind: CELDeviceConstraint
//	      name: ring4
//	      expression: devices.all(d, d.attributes['mla.example.com'].healthy)
//
// No device has an attribute in the domain celset.dev, so a scheduler that does
// not know these constraints cannot allocate such a claim at all: it fails
// closed.
//
// The scheduler calls [Resolve] to get from a claim to its expressions. An
// admission webhook uses the same code: [ClaimCarrier] or [TemplateCarrier] and
// then [Carrier.Definitions] or [Carrier.Resolve], and [ClassDefinitions] for a
// DeviceClass. Nothing here compiles or evaluates an expression.
//
// +groupName=celset.dev
package v1alpha1
