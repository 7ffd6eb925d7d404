// Composes the private API, and the description of every path of a front.

import { openParquetFile } from '#adapters/parquet-thread/parquet-file.ts'
import type { GetBaseUrl } from '#http/management/kit/base-url.ts'
import type { ManagementRoute } from '#http/management/kit/endpoint.ts'
import { openApiRoutes } from '#http/management/kit/openapi.ts'
import { managementRoutes } from '#http/management/management-routes.ts'
import type { Route } from '#http/shared/route.ts'
import type { RejectReplay } from '#services/capture/replay-rejects.ts'
import { createExportSlots } from '#services/exports/export-slots.ts'
import type { DecideService } from '#services/flags/decide.ts'
import { createPasswords } from '#services/manage/passwords.ts'
import { createSignInAttempts } from '#services/manage/sign-in-attempts.ts'
import { createSubjectScanQueues } from '#services/scans/subject-scans.ts'
import type { ManagementParts } from './parts.ts'

export interface ManagementFeatures {
  readonly decide: Pick<DecideService, 'traceEvaluation'>
  readonly rejects: RejectReplay
  /** The version of Pennon that the description states. */
  readonly version: string
  /** Routes to describe in addition to the private API. */
  readonly otherRoutes: readonly Route[]
}

export function composeManagement(
  parts: ManagementParts,
  { decide, rejects, version, otherRoutes }: ManagementFeatures,
): { api: readonly ManagementRoute[]; routes: readonly Route[] } {
  const { clock, newUuid, randomBytes, noteStateAway, logger, definitions, liveEvents, monotonicNowMs, host } = parts
  const { addressBase, screensBase, sessionCookie, trustedProxies } = parts
  const { management, eventStore, logReader, payloadCipher } = parts.stores
  const api = managementRoutes({
    management,
    events: eventStore,
    rejects,
    log: logReader,
    definitionsReady: definitions.catchUp,
    servedProject: definitions.findProjectById,
    keyCheck: definitions.keyCheck,
    sessionCheck: definitions.sessionCheck,
    passwords: createPasswords(randomBytes),
    attempts: createSignInAttempts(management, clock),
    sdkBase: composeSdkBase(parts),
    ...{ addressBase, screensBase, sessionCookie, trustedProxies, version },
    exportPlaces: createExportSlots(),
    scans: createSubjectScanQueues(monotonicNowMs),
    openParquetFile,
    startedAtMs: clock.nowMs(),
    isProcessing: () => host.processingState() === 'ok',
    ...{ decide, liveEvents, payloadCipher, clock, newUuid, randomBytes, noteStateAway, logger, monotonicNowMs },
  })
  return { api, routes: [...api, ...openApiRoutes({ version, managementRoutes: api, otherRoutes })] }
}

/** The host that SDKs are given: on the port for SDKs, to which the public URL leads. */
function composeSdkBase({ config: { adminPort, port, publicUrl }, screensBase }: ManagementParts): GetBaseUrl {
  if (adminPort === null) return screensBase
  return request => {
    const base = screensBase(request)
    if (publicUrl !== null || !URL.canParse(base)) return publicUrl ?? base
    const url = new URL(base)
    url.port = String(port)
    return url.origin
  }
}
