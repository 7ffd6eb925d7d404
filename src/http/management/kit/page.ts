// The absolute addresses of the next and the previous page of a list, as PostHog answers them.

import type { FastifyRequest } from 'fastify'
import { readAddressBase } from './address-base.ts'

export interface PageRequest {
  readonly limit: number
  readonly offset: number
}

/** `{"count","next","previous"}` of a page of a list with `count` items. */
export function encodeCountAndNeighbours(
  request: FastifyRequest,
  page: PageRequest,
  count: number,
  resultCount: number,
) {
  const nextOffset = page.offset + resultCount
  const hasMore = nextOffset < count && resultCount > 0
  return { count, ...encodeNeighbourAddresses(request, page, hasMore ? nextOffset : null) }
}

/** `{"next","previous"}` for a list that is not counted. */
export function uncountedNeighbours(request: FastifyRequest, page: PageRequest, hasMore: boolean, resultCount: number) {
  return encodeNeighbourAddresses(request, page, hasMore ? page.offset + resultCount : null)
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
  return `${readAddressBase(request)}${path}${text === '' ? '' : `?${text}`}`
}

/** @param nextOffset null when this page is the last. */
function encodeNeighbourAddresses(request: FastifyRequest, { limit, offset }: PageRequest, nextOffset: number | null) {
  const before = Math.max(0, offset - limit)
  // The other pages of a list requested by `page` are addressed by offset.
  const pageAddress = (from: number) =>
    addressWith(request, { page: null, limit: String(limit), offset: from === 0 ? null : String(from) })
  return {
    next: nextOffset === null ? null : pageAddress(nextOffset),
    previous: offset === 0 ? null : pageAddress(before),
  }
}

function splitOnce(text: string, separator: string): [string, string?] {
  const index = text.indexOf(separator)
  return index === -1 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}
