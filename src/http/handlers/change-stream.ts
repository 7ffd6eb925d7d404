// The change stream: a response that stays open and reports changed definitions. The change hub decides which client gets
// which report; this file handles the socket. Source: docs/wire/ofrep.md 5.

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { ChangeHub, ChangeReader, Refusal } from '#services/flags/change-hub.ts'
import {
  changeStreamPath,
  computeChangeTag,
  encodeChangeEvent,
  encodeStreamStart,
  lastEventIdOf,
  readStreamApiKey,
  streamHeartbeat,
} from '#wire/flags/change-events.ts'
import type { RawDecideQuery } from '#wire/flags/decide-query.ts'
import { type OfrepError, ofrepErrors } from '#wire/flags/ofrep-errors.ts'
import { streamHeaders } from '../management/kit/stream-answers.ts'
import type { Route } from '../shared/route.ts'
import { encodeServerError, sendOfrepError } from './ofrep.ts'

export interface ChangeStreamOptions {
  readonly findProject: (apiKey: string) => CompiledProject | null
  readonly changes: ChangeHub
}

const noBodyBytes = 1_024

export function changeStreamRoutes(options: ChangeStreamOptions): Route[] {
  return [
    {
      method: 'GET',
      path: changeStreamPath,
      access: 'project_key',
      group: 'changes',
      bodyLimitBytes: noBodyBytes,
      encodeError: encodeServerError,
      handler: (request, reply) => {
        const refusal = openStream(options, request, reply)
        if (refusal !== null) sendOfrepError(reply, refusal, null)
      },
    },
  ]
}

/** Opens the stream. @returns null when it is open; otherwise the refusal. */
function openStream(
  { findProject, changes }: ChangeStreamOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): OfrepError | null {
  const query = request.query as RawDecideQuery
  const key = readStreamApiKey(request.headers, query)
  if (key === '') return ofrepErrors.missingKey
  const compiled = findProject(key)
  if (compiled === null) return ofrepErrors.unknownKey
  const { project, revision } = compiled
  const tag = computeChangeTag(project.uuid, revision)
  const seen = lastEventIdOf(request.headers, query)
  const knows = seen === null ? 'nothing' : seen === tag ? 'current' : 'other'
  const subscribed = changes.subscribe(project, createChangeReader(reply.raw, project.uuid), knows)
  if (!subscribed.ok) return refusals[subscribed.error]
  const { isBehind, leave } = subscribed.value
  reply.raw.once('close', leave)
  // From here on we write the response ourselves: Fastify would wait for a body.
  reply.hijack()
  reply.raw.writeHead(200, {
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': 'text/event-stream',
    ...streamHeaders,
    connection: 'close',
  })
  reply.raw.write(encodeStreamStart(tag) + (isBehind ? encodeChangeEvent(tag) : ''))
  return null
}

const refusals: Record<Refusal, OfrepError> = {
  closed: ofrepErrors.stopping,
  full: ofrepErrors.noMoreStreams,
  project_full: ofrepErrors.tooManyStreams,
}

function createChangeReader(response: ServerResponse, projectUuid: string): ChangeReader {
  return {
    changed: (revision, taken) =>
      void response.write(encodeChangeEvent(computeChangeTag(projectUuid, revision)), taken),
    heartbeat: taken => void response.write(streamHeartbeat, taken),
    end: () => void response.end(),
    drop: () => void response.destroy(),
  }
}
