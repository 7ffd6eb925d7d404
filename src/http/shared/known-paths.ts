// The paths of the route table, in both spellings, and the methods of each: they decide between 404 and 405, and what
// `Allow` lists.

import type { FastifyRequest } from 'fastify'
import type { Route, RouteGroup } from './route.ts'

/** A path of the table; its group and echoed headers are those of its first route. */
export interface KnownPath extends Pick<Route, 'group' | 'echoes'> {
  /** With parameters, as Fastify registers it. */
  readonly path: string
  readonly methods: ReadonlySet<string>
  /** Matches the addresses that Fastify would find under `path`. */
  readonly pattern: RegExp
}

/** Every usual method is registered on every known path; other methods reach only the not-found handler. */
export const usualMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function knownPathsOf(routes: readonly Route[]): readonly KnownPath[] {
  const known = new Map<string, KnownPath & { readonly methods: Set<string> }>()
  for (const route of routes) {
    for (const path of spellings(route.path)) {
      const { group, echoes } = route
      const entry = known.get(path) ?? {
        ...{ path, group, methods: new Set<string>(), pattern: patternOf(path) },
        ...(echoes && { echoes }),
      }
      known.set(path, entry)
      entry.methods.add(route.method)
      if (answersHead(route)) entry.methods.add('HEAD')
    }
  }
  return [...known.values()]
}

/** The path of a request with an unusual method; undefined for usual ones, which every known path has registered. */
export function findKnownPath(
  known: readonly KnownPath[],
  { method, url }: Pick<FastifyRequest, 'method' | 'url'>,
): KnownPath | undefined {
  if (usualMethods.includes(method)) return undefined
  const path = url.split('?', 1)[0]!
  return known.find(({ pattern }) => pattern.test(path))
}

/** The path with and without a slash at its end; only as it is when it is the root, a file or a prefix. */
export function spellings(path: string): string[] {
  return path === '/' || path.endsWith('/*') || path.includes('.') ? [path] : [path, `${path}/`]
}

/** Each parameter of a path matches one segment of an address. */
function patternOf(path: string): RegExp {
  const literal = path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replaceAll(/:\w+/g, '[^/]+')}$`)
}

const headAnswered: ReadonlySet<RouteGroup> = new Set<RouteGroup>([
  'health',
  'management',
  'live',
  'exports',
  'definitions',
])

/**
 * Load balancers and scripts ask with HEAD. Wire routes do not get it from their GET: there a GET may send events, and
 * HEAD has rules of its own.
 */
export function answersHead(route: Pick<Route, 'method' | 'group'>): boolean {
  return route.method === 'GET' && headAnswered.has(route.group)
}
