// The paths of the route table, with and without a trailing slash, and the methods of each path. They decide between 404
// and 405, and what `Allow` lists.

import type { FastifyRequest } from 'fastify'
import { corsMethods } from './cors.ts'
import type { Route, RouteGroup } from './route.ts'

/** A path of the route table, with the group and echoed headers of the path's first route. */
export interface KnownPath extends Pick<Route, 'group' | 'echoes'> {
  /** The path with parameters, as Fastify registers it. */
  readonly path: string
  readonly methods: ReadonlySet<string>
  /** The parts of `path` between slashes. */
  readonly segments: readonly string[]
}

/**
 * Whether a path also registers the methods that it does not offer. Most paths leave them to the not-found handler, since
 * each registration takes time at every start. But paths that pages may call need OPTIONS, and addresses such as
 * `flags/my_flags` and `flags/` would otherwise match a `flags/:id` that offers the method.
 */
export function doesRegisterAllMethods(path: KnownPath, known: readonly KnownPath[]): boolean {
  return corsMethods[path.group] !== null || known.some(other => other !== path && matchesAddress(other, path.segments))
}

/** The methods that a path registers if `doesRegisterAllMethods`; all other methods reach only the not-found handler. */
export const usualMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function collectKnownPaths(routes: readonly Route[]): readonly KnownPath[] {
  const known = new Map<string, KnownPath & { readonly methods: Set<string> }>()
  for (const route of routes) {
    for (const path of listPathSpellings(route.path)) {
      const { group, echoes } = route
      const entry = known.get(path) ?? {
        ...{ path, group, methods: new Set<string>(), segments: path.split('/') },
        ...(echoes && { echoes }),
      }
      known.set(path, entry)
      entry.methods.add(route.method)
      if (doesAnswerHead(route)) entry.methods.add('HEAD')
    }
  }
  return [...known.values()]
}

/** Finds the path of a request for which no route was found, if the path offers other methods. */
export function findKnownPath(
  known: readonly KnownPath[],
  { method, url }: Pick<FastifyRequest, 'method' | 'url'>,
): KnownPath | undefined {
  const address = url.split('?', 1)[0]!.replace(/\/{2,}/g, '/')
  const segments = address.split('/')
  // Each path is known with and without a trailing slash, so that `flags/` is never taken for `flags/:id` without an id.
  const offersOtherMethods = ({ path, methods }: KnownPath) =>
    path.endsWith('/') === address.endsWith('/') && !methods.has(method)
  return known.find(path => offersOtherMethods(path) && matchesAddress(path, segments))
}

/** The path with and without a trailing slash; unchanged if it is the root, a file or a prefix. */
export function listPathSpellings(path: string): string[] {
  return path === '/' || path.endsWith('/*') || path.includes('.') ? [path] : [path, `${path}/`]
}

/** Whether Fastify would match the address with the path: each parameter matches one segment, even an empty segment. */
function matchesAddress({ segments }: KnownPath, address: readonly string[]): boolean {
  return (
    segments.length === address.length &&
    segments.every((segment, index) => segment.startsWith(':') || segment === address[index])
  )
}

const headAnswered: ReadonlySet<RouteGroup> = new Set<RouteGroup>([
  'health',
  'management',
  'live',
  'exports',
  'definitions',
  'ui',
])

/**
 * Load balancers and scripts send HEAD. Routes of PostHog's public API do not derive HEAD from GET: there, a GET may send
 * events, and HEAD has separate rules.
 */
export function doesAnswerHead(route: Pick<Route, 'method' | 'group'>): boolean {
  return route.method === 'GET' && headAnswered.has(route.group)
}
