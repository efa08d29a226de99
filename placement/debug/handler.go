// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/report"
)

// Path is where the handler expects to be served, with everything below it.
const Path = "/debug/placements"

const (
	// concurrent is how many Placements are decided at a time. Nothing is remembered from one to the
	// next, so each takes as long as the first decision does, and the controller needs the
	// processors, too.
	concurrent = 2
	// maxWaiting is how many of one namespace may wait.
	maxWaiting = 8

	// DefaultTimeout is how long one answer may take.
	DefaultTimeout = 30 * time.Second
	// clusterParameter names a cluster to tell of, nowParameter the time of the decision.
	clusterParameter = "cluster"
	nowParameter     = "now"
)

var resource = schema.GroupVersionResource{Group: clusterv1beta1.GroupName, Version: clusterv1beta1.GroupVersion.Version, Resource: "placements"}

// Placements has the Placements of a hub and decides them.
type Placements interface {
	// Placement returns a Placement; if there is none the error is NotFound of the API
	// machinery.
	Placement(ctx context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error)
	// Schedule decides a Placement, be it on the hub or not, and writes nothing. It is
	// decided as it would be at a time, or now if that is zero. There may be a result with
	// an error, as that of [placement.Scheduler.Schedule].
	Schedule(ctx context.Context, object *clusterv1beta1.Placement, at time.Time) (*placement.Result, error)
}

// Options describe a handler. Those without a default must be given.
type Options struct {
	// Placements decides.
	Placements Placements
	// Authenticator says who asks.
	Authenticator authenticator.Request
	// Authorizer says what they may: get or create Placements.
	Authorizer authorizer.UnconditionalAuthorizer
	// All is whether the controller decides all Placements that are not disabled.
	All bool
	// Timeout is how long an answer may take; zero means [DefaultTimeout].
	Timeout time.Duration
}

type handler struct {
	Options
	turns *fairness.Turns
}

// NewHandler returns a handler of everything below [Path].
func NewHandler(options Options) (http.Handler, error) {
	if options.Placements == nil || options.Authenticator == nil || options.Authorizer == nil {
		return nil, errors.New("debugging of placement: Placements, Authenticator and Authorizer must be given")
	}
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	return &handler{Options: options, turns: fairness.NewTurns(concurrent, maxWaiting)}, nil
}

// ServeHTTP answers one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if isForPeople(request) {
		thePage().ServeHTTP(w, request)
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), h.Timeout)
	defer cancel()
	answer, err := h.answer(w, request.WithContext(ctx))
	if err != nil {
		refuse(ctx, w, err)
		return
	}
	status := http.StatusOK
	if answer.Error != "" {
		status = http.StatusInternalServerError
	}
	reply(ctx, w, status, answer)
}

// answer asks who it is before anything else is said, even that there is no such path.
func (h *handler) answer(w http.ResponseWriter, request *http.Request) (*report.Report, error) {
	who, err := h.authenticate(request)
	if err != nil {
		return nil, err
	}
	segments := strings.Split(strings.TrimPrefix(request.URL.Path, Path), "/")
	switch {
	case !strings.HasPrefix(request.URL.Path, Path) || segments[0] != "":
		return nil, noSuchPath(request)
	case len(segments) == 1 || len(segments) == 2 && segments[1] == "":
		return h.post(w, request, who)
	case len(segments) == 3 && segments[1] != "" && segments[2] != "":
		return h.get(w, request, who, types.NamespacedName{Namespace: segments[1], Name: segments[2]})
	default:
		return nil, noSuchPath(request)
	}
}

// get decides a Placement of the hub.
func (h *handler) get(w http.ResponseWriter, request *http.Request, who user.Info, key types.NamespacedName) (*report.Report, error) {
	if err := allow(w, request, http.MethodGet); err != nil {
		return nil, err
	}
	if err := h.authorize(request.Context(), who, "get", key); err != nil {
		return nil, err
	}
	object, err := h.Placements.Placement(request.Context(), key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, refusalOf(apierrors.NewNotFound(resource.GroupResource(), key.Name))
	case err != nil:
		return nil, fmt.Errorf("get Placement %s: %w", key, err)
	}
	return h.decide(request, object)
}

// post decides a Placement that may not be on the hub.
func (h *handler) post(w http.ResponseWriter, request *http.Request, who user.Info) (*report.Report, error) {
	if err := allow(w, request, http.MethodPost); err != nil {
		return nil, err
	}
	object, err := decode(w, request, who.GetName())
	if err != nil {
		return nil, err
	}
	if err := h.authorize(request.Context(), who, "create", types.NamespacedName{Namespace: object.Namespace}); err != nil {
		return nil, err
	}
	return h.decide(request, object)
}

// timeOf is the time that a request asks for, zero if it does not. All that celset remembers
// of a hub was made later than 1970.
func timeOf(query url.Values) (time.Time, error) {
	if !query.Has(nowParameter) {
		return time.Time{}, nil
	}
	given := query.Get(nowParameter)
	at, err := time.Parse(time.RFC3339, given)
	if err != nil || at.Year() < 1970 {
		return time.Time{}, refusalOf(apierrors.NewBadRequest(fmt.Sprintf(
			"the parameter %s is %q; give a time from 1970 on, such as 2026-08-01T12:00:00Z, or 2026-08-01T14:00:00%%2B02:00 with the + of its offset escaped",
			nowParameter, report.Clip(given, report.MaxReason))))
	}
	return at.UTC(), nil
}

// decide waits for its turn. How long it takes then is bounded by who decides, and all
// of it by the context.
func (h *handler) decide(request *http.Request, object *clusterv1beta1.Placement) (*report.Report, error) {
	object, err := without(object, request.URL.Query())
	if err != nil {
		return nil, err
	}
	ctx := request.Context()
	at, err := timeOf(request.URL.Query())
	if err != nil {
		return nil, err
	}
	end, err := h.turns.Take(ctx, object.Namespace)
	switch {
	case errors.Is(err, fairness.ErrTooMany):
		return nil, refusalOf(apierrors.NewTooManyRequests(
			fmt.Sprintf("%d others wait for Placements of the namespace %s to be decided; ask again later", maxWaiting, object.Namespace), 1))
	case err != nil:
		return nil, refusalOf(apierrors.NewServerTimeout(resource.GroupResource(), "decide", int(h.Timeout.Seconds())))
	}
	defer end()
	result, err := h.Placements.Schedule(ctx, object, at)
	if result == nil {
		return nil, fmt.Errorf("decide Placement %s/%s: %w", object.Namespace, object.Name, err)
	}
	return report.New(object, result, err, report.Options{Clusters: request.URL.Query()[clusterParameter], Removed: report.MaxRemoved, All: h.All}), nil
}

// withoutParameter is the index of a predicate that is left out.
const withoutParameter = "without"

// without returns the Placement as it is, or, if the query says so, a copy without one of its
// predicates: what would become of it if that went.
func without(object *clusterv1beta1.Placement, query url.Values) (*clusterv1beta1.Placement, error) {
	if !query.Has(withoutParameter) {
		return object, nil
	}
	text, predicates := query.Get(withoutParameter), object.Spec.Predicates
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= len(predicates) {
		return nil, refusalOf(apierrors.NewBadRequest(fmt.Sprintf(
			"%s=%s names no predicate: the Placement has %d, counted from 0", withoutParameter, report.Clip(text, report.MaxReason), len(predicates))))
	}
	changed := object.DeepCopy()
	changed.Spec.Predicates = slices.Delete(changed.Spec.Predicates, i, i+1)
	return changed, nil
}
