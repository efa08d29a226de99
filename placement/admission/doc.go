// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission refuses Placements that the controller would call
// misconfigured, before they are stored: with [placement.Scheduler.Validate], so the
// two never disagree. [Checker] is the check alone, [Register] hosts it:
//
//	server := webhook.NewServer(webhook.Options{CertDir: "/certificates"})
//	err := admission.Register(server, admission.Options{})
//	err = server.Start(ctx)
//
// The server may host other webhooks, too. The API server learns of this one by
//
//	apiVersion: admissionregistration.k8s.io/v1
//	kind: ValidatingWebhookConfiguration
//	metadata: {name: celset-placement}
//	webhooks:
//	- name: placements.celset.dev
//	  admissionReviewVersions: [v1]
//	  sideEffects: None
//	  matchPolicy: Equivalent
//	  clientConfig:
//	    service: {namespace: celset-system, name: celset-webhook, path: /validate-placements}
//	    caBundle: ...
//	  rules:
//	  - apiGroups: [cluster.open-cluster-management.io]
//	    apiVersions: [v1beta1]
//	    resources: [placements]
//	    operations: [CREATE, UPDATE]
//
// # Which Placements
//
// Those that celset is responsible for ([placement.Responsible]); with others it has
// no business, and with those that are being deleted neither.
//
// # Updates
//
// What is stored was admitted once, if only by a hub without this webhook. So an
// update is refused for what it makes wrong: a field that is wrong now and was not
// with the same value. What was wrong before and still is, be it at another place of
// its list, is a warning. Updates of other metadata and of finalizers always pass, as
// does the annotation that gives a stored Placement to celset. The annotation
// celset.dev/tie-break is configuration like the fields of the spec.
package admission
