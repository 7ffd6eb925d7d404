// The OpenTelemetry endpoints. They decode and count the items sent, and answer that none was stored, so that SDKs and
// collectors neither retry nor fail. Bodies that would block the event loop are read in a thread.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RandomUint32 } from '#core/capture/event-uuid.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ThreadPool } from '#ports/thread-pool.ts'
import type { OtlpService } from '#services/capture/otlp-service.ts'
import { findClientAddress } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { type RawQuery, readTextParameters } from '#wire/capture/capture-query.ts'
import { findTokenFault } from '#wire/capture/capture-token.ts'
import {
  createOtlpTooLargeError,
  encodeOtlpError,
  encodePartialSuccess,
  otlpContentTypes,
  otlpErrors,
  otlpFormOfContentType,
} from '#wire/otlp/otlp-answers.ts'
import { type OtlpPath, otlpPaths } from '#wire/otlp/otlp-paths.ts'
import { type OtlpForm, type OtlpInput, readOtlpOnEventLoop } from '#wire/otlp/read-otlp.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Route, sendBytes } from '../shared/route.ts'
import { decodeInThread, setRetryAfter } from './decode-in-thread.ts'

export interface OtlpRouteDeps {
  readonly otlp: OtlpService
  readonly decodeThreads: ThreadPool<DecodeJobs>
  readonly trustedProxies: TrustedProxies
  readonly random: RandomUint32
}

export function otlpRoutes(deps: OtlpRouteDeps): Route[] {
  return otlpPaths.map(path => ({
    method: 'POST',
    path: path.path,
    access: 'project_key',
    group: 'capture',
    bodyLimitBytes: path.bytesMax,
    tooLarge: createOtlpTooLargeError(path.bytesMax),
    encodeError: error => encodeOtlpError('json', error).toString(),
    answerError: sendOtlpError,
    beforeBody: (request, reply) => {
      const token = readToken(deps.otlp, request)
      if (!token.ok) sendOtlpError(request, reply, token.error)
      return token.ok
    },
    handler: (request, reply) => handleOtlp(deps, path, request, reply),
  }))
}

async function handleOtlp(
  deps: OtlpRouteDeps,
  path: OtlpPath,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const token = readToken(deps.otlp, request)
  if (!token.ok) return sendOtlpError(request, reply, token.error)
  const { headers } = request
  const input: OtlpInput = {
    body: request.body as Buffer,
    ...{ signal: path.signal, bytesMax: path.bytesMax },
    announced: otlpFormOfContentType(headers['content-type']),
    contentEncoding: headers['content-encoding'] ?? '',
    compression: readTextParameters(request.query as RawQuery).compression,
  }
  let read = readOtlpOnEventLoop(input)
  if (read === 'too_much_work') {
    const address = findClientAddress(headers, request.raw.socket.remoteAddress, deps.trustedProxies)
    const toJob = (body: Uint8Array<ArrayBuffer>) => ({ input: { ...input, body }, token: token.value, address })
    const elsewhere = await decodeInThread(deps.decodeThreads, 'otlp', input.body, toJob, reply)
    if (elsewhere === null) {
      setRetryAfter(reply, deps.random)
      return sendOtlpError(request, reply, otlpErrors.transient)
    }
    read = elsewhere
  }
  switch (read.kind) {
    case 'read': {
      const { form, count, service } = read
      deps.otlp.note(token.value, { signal: path.signal, count, service })
      return sendBytes(reply, 200, otlpContentTypes[form], encodePartialSuccess(form, path, count))
    }
    case 'unreadable':
      return sendOtlpError(request, reply, otlpErrors.unreadable)
    case 'too_large':
      return sendOtlpError(request, reply, createOtlpTooLargeError(path.bytesMax))
  }
}

/** The project's key from the header or, if it has none, from the query. */
function readToken(otlp: OtlpService, { headers, query }: FastifyRequest): Result<string, WireError> {
  const bearer = /^bearer (.*)$/i.exec(headers.authorization ?? '')?.[1]?.trim() ?? ''
  const token = bearer === '' ? (readTextParameters(query as RawQuery).token ?? '').trim() : bearer
  if (token === '') return err(otlpErrors.missingKey)
  return findTokenFault(token) === null && otlp.admits(token) ? ok(token) : err(otlpErrors.invalidKey)
}

/** Sends the error in the format of the request's content type. */
function sendOtlpError(request: FastifyRequest, reply: FastifyReply, error: WireError): void {
  const form: OtlpForm = otlpFormOfContentType(request.headers['content-type'])
  sendBytes(reply, error.status, otlpContentTypes[form], encodeOtlpError(form, error))
}
