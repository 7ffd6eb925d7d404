// Definitions in memory, compiled once per project revision: what a request finds without asking a store.
// Follows the instance's revision; a write by this process is served before it is answered (`catchUp`), writes of other
// processes as soon as the store tells of them, within the polling interval at the latest. Knows nothing of how a project is compiled.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { DefinitionChanges, DefinitionStore } from '#ports/definition-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'

export interface DefinitionCache<T> {
  /** The project of a project API key, or null. */
  findByToken(token: string): T | null
  findById(projectId: number): T | null
  projectCount(): number
  /** The project that a valid secret key belongs to; by SHA-256, hex, so the look-up tells nothing about a key. */
  findBySecretHash(secretHash: string): T | null
  /**
   * Resolves when the write that was given `revision` is served.
   * @throws PortError when definitions cannot be read; `unavailable` when the store has lost the write meanwhile.
   */
  catchUp(revision: number): Promise<void>
  /**
   * For a client that heard from another process of definitions that are not served here: asks the store once, however many
   * wait for it. Never rejects, and waits no longer than a second.
   */
  lookForChanges(): Promise<void>
  /** Whether definitions were read; the last ones go on being served while reading newer ones fails. */
  isServing(): boolean
  close(): void
}

export interface DefinitionCacheOptions<T> {
  readonly store: DefinitionStore
  /**
   * May give the event loop its turn in between: the projects of one load are served together, when all are compiled.
   * @param previous what the project was compiled to before; null when it is new here.
   */
  readonly compile: (definitions: ProjectDefinitions, previous: T | null) => MaybePromise<T>
  readonly logger: Logger
  /** Called when another revision is served: something changed, here or elsewhere, if only a key. */
  readonly onRevision?: (changes: ServedChanges) => void
  /** How often to ask for the revision, ms. */
  readonly pollMs: number
}

/** What is served since another revision is. */
export interface ServedChanges {
  /** With the revision of their last change and the key that finds them now. */
  readonly projects: readonly { readonly id: number; readonly apiToken: string; readonly revision: number }[]
  readonly deletedProjectIds: readonly number[]
}

/** What `lookForChanges` may take of somebody's request. */
const lookMsMax = 1_000

/** One line per this long while the state cannot be read; it is asked about twice a second. */
const complaintPauseMs = 10_000

/** Loads everything, then follows. @throws PortError when the first load fails. */
export async function startDefinitionCache<T>(options: DefinitionCacheOptions<T>): Promise<DefinitionCache<T>> {
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
  options.store.onChange?.(revision => void follow(async () => revision))

  return {
    findByToken: token => byToken.get(token) ?? null,
    findById: projectId => byId.get(projectId)?.compiled ?? null,
    findBySecretHash: secretHash => bySecretHash.get(secretHash) ?? null,
    projectCount: () => byId.size,
    catchUp,
    lookForChanges,
    isServing: () => served >= 0,
    close: () => clearInterval(timer),
  }

  async function catchUp(revision: number): Promise<void> {
    // It was loaded already, or what is served had that number before the store came back from an older copy.
    if (revision <= served) await askForRevision()
    await refreshUpTo(revision)
    if (served >= revision) return
    startsOver = true
    await refreshUpTo(revision)
    if (served >= revision) return
    const message = `revision ${revision} is not there any more: the state stands at ${served}, an older copy of it took over`
    throw new PortError('state', 'unavailable', new Error(message))
  }

  async function lookForChanges(): Promise<void> {
    looking ??= follow(askForRevision).finally(() => {
      looking = undefined
    })
    await Promise.race([looking, sleep(lookMsMax, undefined, { ref: false })])
  }

  /** A store that came back from an older copy: what it lacks is served here, and what is new counts from there on. */
  async function askForRevision(): Promise<number> {
    const [servedBefore, epochBefore] = [served, servedEpoch]
    const latest = await options.store.revision()
    if (latest.revision < servedBefore || latest.epoch !== epochBefore) startsOver = true
    return latest.revision
  }

  /** One question at a time: a store that hangs is not asked more and more of them. */
  async function poll(): Promise<void> {
    if (isPolling) return
    isPolling = true
    await follow(askForRevision)
    isPolling = false
  }

  async function follow(latestRevision: () => Promise<number>): Promise<void> {
    try {
      await refreshUpTo(await latestRevision())
    } catch (cause) {
      const nowMs = performance.now()
      if (nowMs - complainedAtMs < complaintPauseMs) return
      complainedAtMs = nowMs
      options.logger.warn({ err: cause }, 'definitions could not be refreshed; the last ones are served')
    }
  }

  async function refreshUpTo(revision: number): Promise<void> {
    const isBehind = () => startsOver || served < revision
    if (isBehind()) await refresh()
    if (isBehind()) await refresh() // the first one may have joined a load from before
  }

  /** One load at a time; a caller that arrives during one waits for it and looks again. */
  async function refresh(): Promise<void> {
    loading ??= load().finally(() => {
      loading = undefined
    })
    await loading
  }

  async function load(): Promise<void> {
    // Asked before: definitions that are of a later epoch than they say are loaded once more.
    const { epoch } = await options.store.revision()
    const isEverything = startsOver || epoch !== servedEpoch
    // Another epoch may give the versions of definitions a second time, for others: nothing is held from the one before.
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
    if (isOther) options.onRevision?.(servedChanges(changes, idsBefore))
  }

  /** @param idsBefore those that a start from the beginning may not have found again. */
  function servedChanges(changes: DefinitionChanges, idsBefore: readonly number[]): ServedChanges {
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
    if (byToken.get(apiToken) === compiled) byToken.delete(apiToken) // the key may be another project's by now
    for (const secretHash of definitions.secretKeyHashes) bySecretHash.delete(secretHash)
    byId.delete(projectId)
  }
}
