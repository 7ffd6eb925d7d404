// Keeps definitions in memory, compiled once per project revision, so that a request finds them without asking a store.
// Follows the instance's revision: a write of this process is served before it is answered (`catchUp`); a write of
// another process is served once the store reports it, or within the polling interval at the latest. The caller decides
// how a project is compiled.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { PortError } from '#ports/port-error.ts'
import type { DefinitionChanges, DefinitionStore } from '#ports/state/definition-store.ts'
import type { Logger } from '#telemetry/log.ts'

export type DefinitionCache<T> = Awaited<ReturnType<typeof startDefinitionCache<T>>>

export interface DefinitionCacheOptions<T> {
  readonly store: DefinitionStore
  /**
   * Compiles a project. It may yield to the event loop, since the projects of one load are served together, once all are
   * compiled.
   * @param previous the project as compiled before; null when it is new in this process.
   */
  readonly compile: (definitions: ProjectDefinitions, previous: T | null) => MaybePromise<T>
  readonly logger: Logger
  /** Called when another revision becomes served: something changed, in any process, even if only a key. */
  readonly onRevision?: (changes: ServedChanges) => void
  /** How often to ask for the revision, ms. */
  readonly pollMs: number
}

/** What a newly served revision changes. */
export interface ServedChanges {
  /** Changed projects, with the revision of their last change and the key by which they are found now. */
  readonly projects: readonly { readonly id: number; readonly apiToken: string; readonly revision: number }[]
  readonly deletedProjectIds: readonly number[]
}

/** How long `lookForChanges` may delay a request. */
const lookMsMax = 1_000

/** While the state cannot be read, one line is logged per this time, since the state is polled about twice a second. */
const complaintPauseMs = 10_000

/** Loads everything, then follows changes. @throws PortError when the first load fails. */
export async function startDefinitionCache<T>(options: DefinitionCacheOptions<T>) {
  const byToken = new Map<string, T>()
  const byId = new Map<number, { definitions: ProjectDefinitions; compiled: T }>()
  const bySecretHash = new Map<string, T>()
  let served = -1
  let servedEpoch: string | undefined
  let loading: Promise<void> | undefined
  let complainedAtMs = Number.NEGATIVE_INFINITY
  let isPolling = false
  let startsOver = false
  let looking: Promise<void> | undefined

  await refresh()
  const timer = setInterval(() => void poll(), options.pollMs)
  timer.unref()
  options.store.onChange?.(revision => void tryRefresh(async () => revision))

  return {
    /** The project with this project API key, or null. */
    findByToken: (token: string) => byToken.get(token) ?? null,
    findById: (projectId: number) => byId.get(projectId)?.compiled ?? null,
    /**
     * The project that a valid secret key belongs to. Takes the key's SHA-256 in hex, so the look-up reveals nothing
     * about it.
     */
    findBySecretHash: (secretHash: string) => bySecretHash.get(secretHash) ?? null,
    projectCount: () => byId.size,
    catchUp,
    lookForChanges,
    /** Whether definitions have been read. While newer definitions cannot be read, the last ones stay served. */
    isServing: () => served >= 0,
    close: () => clearInterval(timer),
  }

  /**
   * Resolves when the write with this revision is served.
   * @throws PortError when definitions cannot be read; `unavailable` when the store has lost the write since.
   */
  async function catchUp(revision: number): Promise<void> {
    // Either the write is loaded already, or the store came back as an older copy and reuses revisions that are served
    // here.
    if (revision <= served) await checkRevision()
    await refreshUpTo(revision)
    if (served >= revision) return
    startsOver = true
    await refreshUpTo(revision)
    if (served >= revision) return
    const message = `revision ${revision} no longer exists: the state is at ${served}, an older copy`
    throw new PortError('state', 'unavailable', new Error(message))
  }

  /**
   * Looks for newer definitions, for a client that knows them from another process. Asks the store once, however many
   * callers wait. Never rejects, and waits no longer than a second.
   */
  async function lookForChanges(): Promise<void> {
    looking ??= tryRefresh(checkRevision).finally(() => {
      looking = undefined
    })
    await Promise.race([looking, sleep(lookMsMax, undefined, { ref: false })])
  }

  /** Reloads after an older copy took over: it lacks revisions that are served here, and reuses their numbers. */
  async function checkRevision(): Promise<number> {
    const [servedBefore, epochBefore] = [served, servedEpoch]
    const latest = await options.store.readRevision()
    if (latest.revision < servedBefore || latest.epoch !== epochBefore) startsOver = true
    return latest.revision
  }

  /** Polls once at a time, so that calls do not pile up at a store that hangs. */
  async function poll(): Promise<void> {
    if (isPolling) return
    isPolling = true
    await tryRefresh(checkRevision)
    isPolling = false
  }

  async function tryRefresh(latestRevision: () => Promise<number>): Promise<void> {
    try {
      await refreshUpTo(await latestRevision())
    } catch (cause) {
      const nowMs = performance.now()
      if (nowMs - complainedAtMs < complaintPauseMs) return
      complainedAtMs = nowMs
      options.logger.warn({ err: cause }, 'cannot refresh definitions; serving the last known ones')
    }
  }

  async function refreshUpTo(revision: number): Promise<void> {
    const isBehind = () => startsOver || served < revision
    if (isBehind()) await refresh()
    if (isBehind()) await refresh() // the first call may have joined a load that began earlier
  }

  /** Loads once at a time; a caller that arrives during a load waits for it and must check again. */
  async function refresh(): Promise<void> {
    loading ??= load().finally(() => {
      loading = undefined
    })
    await loading
  }

  async function load(): Promise<void> {
    // The epoch is read first: definitions from a later epoch are then loaded again, and none are missed.
    const { epoch } = await options.store.readRevision()
    const isEverything = startsOver || epoch !== servedEpoch
    // In another epoch, a definition with the same version may differ, so nothing is kept from the previous epoch.
    const changes = isEverything
      ? await options.store.loadChanges(-1)
      : await options.store.loadChanges(served, projectId => byId.get(projectId)?.definitions ?? null)
    const compiledOf = new Map<ProjectDefinitions, T>()
    for (const definitions of changes.projects) {
      const previous = byId.get(definitions.project.id)?.compiled ?? null
      compiledOf.set(definitions, await options.compile(definitions, previous))
    }
    const idsBefore = isEverything ? [...byId.keys()] : []
    if (isEverything) {
      byToken.clear()
      byId.clear()
      bySecretHash.clear()
      startsOver = false
    }
    for (const projectId of changes.deletedProjectIds) forget(projectId)
    for (const definitions of changes.projects) {
      const { id, apiToken } = definitions.project
      const compiled = compiledOf.get(definitions)!
      forget(id)
      byId.set(id, { definitions, compiled })
      byToken.set(apiToken, compiled)
      for (const secretHash of definitions.secretKeyHashes) bySecretHash.set(secretHash, compiled)
    }
    const isOther = isEverything || changes.revision !== served
    served = changes.revision
    servedEpoch = epoch
    if (isOther) options.onRevision?.(toServedChanges(changes, idsBefore))
  }

  /** @param idsBefore projects that were served before a full reload; the reload may lack some of them. */
  function toServedChanges(changes: DefinitionChanges, idsBefore: readonly number[]): ServedChanges {
    return {
      projects: changes.projects.map(({ project: { id, apiToken }, revision }) => ({ id, apiToken, revision })),
      deletedProjectIds: [...changes.deletedProjectIds, ...idsBefore.filter(id => !byId.has(id))],
    }
  }

  function forget(projectId: number): void {
    const known = byId.get(projectId)
    if (known === undefined) return
    const { definitions, compiled } = known
    const { apiToken } = definitions.project
    if (byToken.get(apiToken) === compiled) byToken.delete(apiToken) // another project may have this key by now
    for (const secretHash of definitions.secretKeyHashes) bySecretHash.delete(secretHash)
    byId.delete(projectId)
  }
}
