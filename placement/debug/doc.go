// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debug answers, over HTTP, why a Placement selects the clusters that it
// selects:
//
//	handler, err := debug.NewHandler(debug.Options{
//		Placements: preview, Authenticator: authenticator, Authorizer: authorizer,
//	})
//
// Package debug/server serves it from a controller manager.
//
// # Requests
//
//   - GET /debug/placements/<namespace>/<name> decides a Placement of the hub. It
//     takes the right to get that Placement.
//   - POST /debug/placements/ decides the Placement in the body, in JSON or YAML and at
//     most 128 KiB, with the defaults of the API. It takes the right to create
//     Placements in its namespace. Its former decisions are those of the Placement of
//     its name, if there is one: what would become of that if it were changed so.
//
// Neither writes anything. A query parameter cluster, which may be repeated, lists
// only the named clusters. The parameter now decides as at that time, with all objects as
// they are: the same request has the same answer, whenever it is made, as long as none of
// them changes.
//
//	curl -H "Authorization: Bearer $TOKEN" "https://$HOST/debug/placements/team/web?cluster=eu-1&now=2026-08-01T22:00:00Z"
//	curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/yaml' --data-binary @web.yaml https://$HOST/debug/placements/
//
// A query parameter without has the index of a predicate, counted from 0: the Placement is
// decided as if it had all the others only. That takes no other right: what a Placement says
// of clusters, it says of those that its predicates remove, too.
//
// # The page
//
// GET /debug/placements/ is a page for people, which asks the first question and shows what
// became of each cluster, and what would be selected if a predicate went. It is the same for
// everybody and tells nothing of the hub; it sends the token that it is given to this server,
// with each question, and keeps it nowhere. It loads nothing, and its policy lets it run
// nothing but its own script.
//
// # Answers
//
// The body is a [report.Report]: everything that the decision comes from, also where the
// Placement is misconfigured and its former decision stands. A decision that could not
// be made is a Report with an error and the status 500. What can't be answered has a
// Status of the Kubernetes API as its body: 400 for what is no Placement, 401 and 403
// for who may not ask, 404, 405, 413 and 415 as HTTP has them.
//
// Nobody is told more than the rights say: there is no difference between a Placement
// that one may not get and one that does not exist. But like every Placement one that
// is tried tells about clusters that its author may not read.
package debug
