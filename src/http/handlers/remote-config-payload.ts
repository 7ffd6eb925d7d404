// The payload of a remote configuration flag, for servers, from the definitions in memory. An encrypted payload is
// decrypted for personal keys only. Source: docs/wire/evaluation.md 7.3.

import type { FastifyRequest } from 'fastify'
import { hasPayload, redactedPayload } from '#core/flags/definitions/encrypted-payloads.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import { readPayloadText } from '#core/flags/evaluation/prepared-outcomes.ts'
import { getOwnValue, isJsonObject } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import type { PayloadCipher } from '#services/manage/payload-cipher.ts'
import type { Logger } from '#telemetry/log.ts'
import { serverKeyErrors } from '#wire/flags/server-key-errors.ts'
import type { WireError } from '#wire/wire-error.ts'
import { findCurrentProject, projectPrefixes } from '../management/kit/endpoint.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'
import { mayOpenProject, requireServerKey, type ServerCaller, type ServerKeyDeps } from './server-key.ts'

export interface RemoteConfigPayloadOptions extends ServerKeyDeps {
  readonly findProject: (token: string) => CompiledProject | null
  readonly findProjectById: (projectId: number) => CompiledProject | null
  readonly management: Pick<ProjectStore, 'findProject' | 'listProjects'>
  readonly cipher: Pick<PayloadCipher, 'open'>
  readonly logger: Logger
}

const noBodyBytes = 1_024
/** The key under which a flag without variants, such as a remote configuration flag, stores its payload. */
const valueKey = 'true'

export function remoteConfigPayloadRoutes(options: RemoteConfigPayloadOptions): Route[] {
  return projectPrefixes.map(prefix => ({
    method: 'GET',
    path: `${prefix}/feature_flags/:flagId/remote_config`,
    access: 'server_key',
    group: 'definitions',
    bodyLimitBytes: noBodyBytes,
    handler: requireServerKey(options, {}, async (caller, request, reply) => {
      const payload = await findPayload(options, caller, request)
      if (!payload.ok) return sendError(reply, payload.error)
      // The payload is JSON text that is sent as a JSON string, so it is encoded twice; every SDK decodes it twice.
      sendJson(reply, 200, payload.value === null ? '' : JSON.stringify(payload.value))
    }),
  }))
}

/** The payload as the caller may see it; null when the flag has none. */
async function findPayload(
  options: RemoteConfigPayloadOptions,
  caller: ServerCaller,
  request: FastifyRequest,
): Promise<Result<string | null, WireError>> {
  const project = await findRequestedProject(options, caller, request)
  if (!project.ok) return project
  const { definitions } = project.value
  const projectId = definitions.project.id
  if (!mayOpenProject(caller, projectId)) return err(serverKeyErrors.otherProject)
  const { flagId } = request.params as { flagId: string }
  const flag = findFlag(definitions.flags, flagId)
  if (flag === undefined || readConfigVersion(flag.filters) !== 1) return err(serverKeyErrors.notFound)
  if (!flag.isRemoteConfiguration) return err(serverKeyErrors.noRemoteConfig)
  const payloads = getOwnValue(flag.filters, 'payloads')
  const text = isJsonObject(payloads) ? readPayloadText(payloads, valueKey) : undefined
  if (!hasPayload(text)) return ok(null)
  if (!flag.hasEncryptedPayloads) return ok(text)
  if (caller.kind === 'secret') return ok(redactedPayload)
  try {
    const opened = await options.cipher.open(text, { projectId, valueKey })
    if (opened !== null) return ok(opened)
    options.logger.error(
      { requestId: request.id, projectId, flagId: flag.id },
      'cannot decrypt a flag payload: its encryption key is not configured',
    )
  } catch (error) {
    const concerned = { requestId: request.id, projectId, flagId: flag.id }
    options.logger.error({ err: error, ...concerned }, 'cannot read the encryption keys')
  }
  return err(serverKeyErrors.decryptFailed)
}

/** A project key in the query takes precedence over the path, in which SDKs write `@current`. */
async function findRequestedProject(
  options: RemoteConfigPayloadOptions,
  caller: ServerCaller,
  request: FastifyRequest,
): Promise<Result<CompiledProject, WireError>> {
  const { token, api_key: apiKey } = request.query as Record<string, string | string[] | undefined>
  const projectKey = [token].flat()[0] || [apiKey].flat()[0] || ''
  if (projectKey !== '') {
    const named = options.findProject(projectKey)
    return named === null ? err(serverKeyErrors.unknownToken) : ok(named)
  }
  const { projectId } = request.params as { projectId: string }
  const found =
    projectId === '@current' ? await findProjectOfKey(options, caller) : findProjectByIdText(options, projectId)
  return found === null ? err(serverKeyErrors.notFound) : ok(found)
}

async function findProjectOfKey(
  options: RemoteConfigPayloadOptions,
  caller: ServerCaller,
): Promise<CompiledProject | null> {
  if (caller.kind === 'secret') return caller.project
  const project = await findCurrentProject(options.management, caller.key)
  return project === null ? null : options.findProjectById(project.id)
}

function findProjectByIdText(options: RemoteConfigPayloadOptions, text: string): CompiledProject | null {
  return /^\d{1,15}$/.test(text) ? options.findProjectById(Number(text)) : null
}

/** Finds a flag by its id or, if no flag has this id, by its key. */
function findFlag(flags: readonly Flag[], idOrKey: string): Flag | undefined {
  const id = /^\d{1,15}$/.test(idOrKey) ? Number(idOrKey) : null
  return flags.find(flag => flag.id === id) ?? flags.find(flag => flag.key === idOrKey)
}
