// Fastify answers 415 to a content type that it cannot read. In this server each route decides what a body is, so such a
// header is removed while Fastify reads the body, and put back before the handler runs.

import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'

const mediaType = /^\s*[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+\s*(?:;|$)/

/** Runs as a hook before the body is read. */
export function hideUnreadableContentType(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  const { headers } = request.raw
  const contentType = headers['content-type']
  if (contentType !== undefined && !mediaType.test(contentType)) {
    hiddenContentTypes.set(headers, contentType)
    delete headers['content-type']
  }
  done()
}

const hiddenContentTypes = new WeakMap<IncomingHttpHeaders, string>()

/** Restores the header as it was sent. */
export function restoreContentType({ raw: { headers } }: FastifyRequest): void {
  if (headers['content-type'] !== undefined) return
  const hidden = hiddenContentTypes.get(headers)
  if (hidden !== undefined) headers['content-type'] = hidden
}
