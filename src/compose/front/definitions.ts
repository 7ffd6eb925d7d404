// Starts the definitions that a front serves, and passes changes on to change streams, the live view, the checks of keys and
// sessions, and quotas.

import { type CompiledProject, compileProjectInSteps } from '#core/flags/evaluation/compile-project.ts'
import type { PersonalKeyStore } from '#ports/state/project-store.ts'
import type { SessionStore } from '#ports/state/user-store.ts'
import { type ChangeHub, createChangeHub } from '#services/flags/change-hub.ts'
import { type DefinitionCache, startDefinitionCache } from '#services/flags/definition-cache.ts'
import { createPersonalKeyCheck, type PersonalKeyCheck } from '#services/manage/personal-key-check.ts'
import { createSessionCheck, type SessionCheck } from '#services/manage/session-check.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import type { FrontContext } from './context.ts'
import type { FrontCounters } from './counters.ts'
import type { FrontState } from './state.ts'

/** As many change streams as take some 100 MB of a front's memory when open. No project may use all of them. */
const changeStreamLimits = { readersMax: 10_000, readersPerProjectMax: 5_000, heartbeatMs: 20_000 }

export interface FrontDefinitions
  extends Pick<
    DefinitionCache<CompiledProject>,
    'findBySecretHash' | 'projectCount' | 'catchUp' | 'lookForChanges' | 'isServing'
  > {
  /** Finds a project by its API key; null when no project has that key. */
  readonly findProject: (token: string) => CompiledProject | null
  readonly findProjectById: (projectId: number) => CompiledProject | null
  readonly changes: ChangeHub
  readonly keyCheck: PersonalKeyCheck
  readonly sessionCheck: SessionCheck
}

export interface DefinitionStores {
  readonly management: Pick<PersonalKeyStore, 'findPersonalKeyByHash'> & Pick<SessionStore, 'findSession'>
  readonly state: Pick<FrontState, 'definitions' | 'definitionPollMs'>
}

/** @param onServed called when the front begins to serve changed definitions. */
export async function startServingDefinitions(
  context: FrontContext,
  { management, state }: DefinitionStores,
  { flagRequests, eventQuotas, keyUses, sessionUses }: Omit<FrontCounters, 'refused' | 'missingEvents'>,
  onServed: () => void,
  opened: AsyncDisposableStack,
): Promise<FrontDefinitions> {
  const { clock, logger } = context
  const keyCheck = createPersonalKeyCheck({ management, clock, uses: keyUses })
  const sessionCheck = createSessionCheck({ management, clock, uses: sessionUses })
  const changes = composeChangeHub(context)
  const cache = await startDefinitionCache({
    store: state.definitions,
    onRevision: served => {
      keyCheck.forget()
      sessionCheck.forget()
      changes.publish(served)
      onServed()
    },
    logger,
    pollMs: state.definitionPollMs,
    compile: async (changed, previous: CompiledProject | null) => {
      flagRequests.follow(changed.project)
      eventQuotas.follow(changed.project)
      const compiled = await runInSlices(compileProjectInSteps(changed, previous))
      for (const problem of compiled.problems)
        logger.warn({ projectId: changed.project.id, ...problem }, 'a stored flag cannot be evaluated')
      return compiled
    },
  })
  opened.defer(() => cache.close())
  await Promise.all([flagRequests.caughtUp(), eventQuotas.caughtUp()])
  return {
    ...cache,
    findProject: cache.findByToken,
    findProjectById: cache.findById,
    // Also wait for quotas: when a write is answered, its quota changes must be in effect, too.
    catchUp: async revision => {
      await cache.catchUp(revision)
      await flagRequests.caughtUp()
    },
    changes,
    keyCheck,
    sessionCheck,
  }
}

/** @param over for tests: other limits. */
export function composeChangeHub(
  { metrics, monotonicNowMs, startTimer }: Pick<FrontContext, 'metrics' | 'monotonicNowMs' | 'startTimer'>,
  over: Partial<typeof changeStreamLimits> = {},
): ChangeHub {
  return createChangeHub({ ...changeStreamLimits, ...over, metrics, monotonicNowMs, startTimer })
}
