// `/array/<token>/…`: the public configuration of a project, as JSON, as a script, and as a script followed by the library.
// Each of these answers is encoded at its first request, once per revision of the project. A project that records only some
// pages has one answer for the recorded pages and one for all other pages. While the project's recording quota is used up,
// it has separate answers. Source: docs/wire/evaluation.md 7.6; docs/wire/clients.md 10.1.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { Project } from '#core/project.ts'
import type { BrowserScripts } from '#ports/browser-scripts.ts'
import type { Clock } from '#ports/clock.ts'
import { type ClientConfig, clientConfigOf, isPageRecorded } from '#wire/browser/client-config.ts'
import {
  encodeRemoteConfig,
  encodeRemoteConfigScript,
  looksLikeProjectToken,
  offConfig,
  type RemoteConfig,
} from '#wire/browser/remote-config.ts'
import { prependToGzip } from '#wire/bytes/gzip-prefix.ts'
import { wireError } from '#wire/wire-error.ts'
import { listAcceptedCompressions } from '../shared/accepted-compressions.ts'
import { computeContentHash, matchesEtag } from '../shared/etag.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'
import { type CompressedScript, javascript, type ScriptHeaders, sendScript } from './script-answer.ts'

export interface RemoteConfigOptions {
  readonly findProject: (token: string) => CompiledProject | null
  readonly scripts: BrowserScripts
  /** Must be cheap: called for each request. */
  readonly isOverRecordingQuota: (project: Project) => boolean
  readonly clock: Clock
}

interface PreparedConfig {
  readonly json: string
  readonly etag: string
  readonly script: Buffer
  readonly scriptHash: string
  /**
   * When the text was encoded, in whole epoch seconds. Sent as `Last-Modified` only after this second has passed, so that
   * no two texts share a date.
   */
  readonly madeAtSecond: number
}

/** Source: docs/wire/evaluation.md 7.6. */
const keptFiveMinutes = 'public, max-age=300'
/** Source: docs/wire/evaluation.md 7.6. */
const vary = 'Origin, Referer'
/** Answers to unknown tokens are not cached: the project may exist a second later, in this process or another. */
const notKept = 'no-store'

export function remoteConfigRoutes(options: RemoteConfigOptions): Route[] {
  const { findProject, scripts, clock, isOverRecordingQuota } = options
  const forRecorded = new WeakMap<ClientConfig, PreparedConfig>()
  const forOthers = new WeakMap<ClientConfig, PreparedConfig>()
  const bundles = new WeakMap<PreparedConfig, Promise<CompressedScript | null>>()
  const common = { access: 'project_key', group: 'browser', bodyLimitBytes: 1_024 } as const
  return (['GET', 'HEAD'] as const).flatMap(method => [
    { ...common, method, path: '/array/:token/config', handler: withToken(answerJson) },
    { ...common, method, path: '/array/:token/config.js', handler: withToken(answerScript) },
    { ...common, method, path: '/array/:token/array.js', handler: withToken(answerBundle) },
  ])

  /** Accepts every project's key, whatever form it has, and any other text that has the form of a key. */
  function withToken(
    answer: (token: string, request: FastifyRequest, reply: FastifyReply) => void | Promise<void>,
  ): Route['handler'] {
    return (request, reply) => {
      const { token } = request.params as { token: string }
      const isAnswered = looksLikeProjectToken(token) || findProject(token) !== null
      return isAnswered ? answer(token, request, reply) : sendError(reply, badToken)
    }
  }

  function answerJson(token: string, request: FastifyRequest, reply: FastifyReply): void {
    const config = getOrPrepareConfig(token, request)
    reply.header('vary', vary)
    if (config === null) {
      reply.header('cache-control', notKept)
      sendError(reply, unknownToken)
      return
    }
    reply.header('cache-control', keptFiveMinutes).header('etag', config.etag)
    const hasAge = Math.floor(clock.nowMs() / 1000) > config.madeAtSecond
    if (hasAge) reply.header('last-modified', new Date(config.madeAtSecond * 1000).toUTCString())
    if (isNotModified(request, config, hasAge)) return void reply.code(304).send()
    sendJson(reply, 200, config.json)
  }

  /** An unknown token gets a script with everything off: a 404 would show up in the console of the page. */
  function answerScript(token: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const known = getOrPrepareConfig(token, request)
    const { script, scriptHash } = known ?? prepareConfig(token, offConfig)
    const answer = { packing: null, byteCount: script.length, pieces: async () => [script] }
    return sendScript(request, reply, answer, toScriptHeaders(scriptHash, known !== null))
  }

  async function answerBundle(token: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const library = await scripts.findScript(libraryName)!
    const known = getOrPrepareConfig(token, request)
    const config = known ?? prepareConfig(token, offConfig)
    const takesGzip = listAcceptedCompressions(request.headers['accept-encoding']).includes('gzip')
    // Compresses for known projects only: an answer to an arbitrary token must cost no more than a copy.
    const packed = takesGzip && known !== null ? await getOrCreateBundle(known) : null
    const answer = packed ?? {
      packing: null,
      byteCount: config.script.length + library.byteCount,
      pieces: async () => [config.script, await library.readBytes()],
    }
    await sendScript(request, reply, answer, toScriptHeaders(`${config.scriptHash}.${library.hash}`, known !== null))
  }

  function getOrPrepareConfig(token: string, request: FastifyRequest): PreparedConfig | null {
    const project = findProject(token)
    if (project === null) return null
    const client = clientConfigOf(project, isOverRecordingQuota)
    const isForRecorded = isPageRecorded(client, request.headers)
    const prepared = isForRecorded ? forRecorded : forOthers
    let config = prepared.get(client)
    if (config === undefined) {
      const hasFeatureFlags = project.flags.length > 0
      const members = isForRecorded ? client.members : client.membersUnrecorded
      config = prepareConfig(token, { hasFeatureFlags, members, isOverRecordingQuota: client.isOverRecordingQuota })
      prepared.set(client, config)
    }
    return config
  }

  function prepareConfig(token: string, remoteConfig: RemoteConfig): PreparedConfig {
    const json = encodeRemoteConfig(token, remoteConfig)
    const script = encodeRemoteConfigScript(token, json)
    return {
      json,
      etag: `"${computeContentHash(json)}"`,
      script: Buffer.from(script),
      scriptHash: computeContentHash(script),
      madeAtSecond: Math.floor(clock.nowMs() / 1000),
    }
  }

  function getOrCreateBundle(config: PreparedConfig): Promise<CompressedScript | null> {
    let bundle = bundles.get(config)
    if (bundle === undefined) {
      bundle = createBundle(config.script)
      bundles.set(config, bundle)
      bundle.catch(() => bundles.delete(config))
    }
    return bundle
  }

  async function createBundle(prefix: Buffer): Promise<CompressedScript | null> {
    const library = await scripts.findScript(libraryName)!
    const packed = await library.readCompressed('gzip')
    if (packed === null) return null
    const pieces = prependToGzip(prefix, packed, await library.readBytes())
    const byteCount = pieces.reduce((sum, { length }) => sum + length, 0)
    return { packing: 'gzip', byteCount, pieces: async () => pieces }
  }
}

const libraryName = 'array.js'

function toScriptHeaders(hash: string, isKnown: boolean): ScriptHeaders {
  return { contentType: javascript, cacheControl: isKnown ? keptFiveMinutes : notKept, vary, hash }
}

/** An entity tag takes precedence over a date, since phones send both. Source: RFC 9110 13.1.3. */
function isNotModified(request: FastifyRequest, config: PreparedConfig, hasAge: boolean): boolean {
  const ifNoneMatch = request.headers['if-none-match']
  if (ifNoneMatch !== undefined) return matchesEtag(ifNoneMatch, config.etag)
  const since = Date.parse(request.headers['if-modified-since'] ?? '')
  return hasAge && config.madeAtSecond * 1000 <= since
}

const badToken = wireError(
  400,
  'invalid_api_key',
  'Malformed project API key: up to 200 letters, digits, dashes and underscores.',
)
const unknownToken = wireError(
  404,
  'unknown_api_key',
  'The project API key in this URL does not belong to any project.',
)
