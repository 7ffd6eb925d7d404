// Lists in pages, with the absolute addresses of the next and the previous page, as PostHog answers them.

import type { FastifyRequest } from 'fastify'
import { addressBaseOf } from './address-base.ts'

export interface PageRequest {
  readonly limit: number
  readonly offset: number
}

/** `{"count","next","previous","results"}`. A page of large items may end before its limit; the next begins there. */
export function countedPage<T>(request: FastifyRequest, page: PageRequest, count: number, results: readonly T[]) {
  const nextOffset = page.offset + results.length
  const hasMore = nextOffset < count && results.length > 0
  return { count, ...neighbours(request, page, hasMore ? nextOffset : null), results }
}

/** `{"next","previous"}` for a list that is not counted; the next page begins where this one ends. */
export function uncountedPage(request: FastifyRequest, page: PageRequest, hasMore: boolean, resultCount: number) {
  return neighbours(request, page, hasMore ? page.offset + resultCount : null)
}

/** The request's own address with some parameters changed; null removes one. */
export function addressWith(request: FastifyRequest, changes: Readonly<Record<string, string | null>>): string {
  const [path, query = ''] = splitOnce(request.url, '?')
  const params = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) params.delete(name)
    else params.set(name, value)
  }
  const text = params.toString()
  return `${addressBaseOf(request)}${path}${text === '' ? '' : `?${text}`}`
}

/** @param nextOffset null when this page is the last. */
function neighbours(request: FastifyRequest, { limit, offset }: PageRequest, nextOffset: number | null) {
  const before = Math.max(0, offset - limit)
  return {
    next: nextOffset === null ? null : addressWith(request, { limit: String(limit), offset: String(nextOffset) }),
    previous:
      offset === 0
        ? null
        : addressWith(request, { limit: String(limit), offset: before === 0 ? null : String(before) }),
  }
}

function splitOnce(text: string, separator: string): [string, string?] {
  const index = text.indexOf(separator)
  return index === -1 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}
