// Divides budgets for bodies, answers and connections between the ports of a process. A separate port for the private API
// has its own share of each budget, and the port for dashboards has its own share of answers and connections, so that the
// operator can reach and configure the instance whatever happens on the public port.

import { readOpenFilesMax } from '#adapters/system/open-files.ts'
import { readTcpQueues } from '#adapters/system/tcp-queues.ts'
import {
  AnswerBudget,
  type AnswerEndReason,
  adminAnswerBudgetBytes,
  answerBudgetBytes,
  eventsAnswerBudgetBytes,
} from '#http/answers/answer-budget.ts'
import { adminBodyLimits, BodyBudget, type BodyEndReason, bodyLimits } from '#http/bodies/request-bodies.ts'
import { type ConnectionEndReason, Connections, computeConnectionsMax, unansweredMax } from '#http/connections.ts'
import type { Logger } from '#telemetry/log.ts'
import { createLogLimiter } from '#telemetry/log-limiter.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { findClientAddress, findSenderNetwork } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'

export interface PortLimits {
  readonly bodyBudget: BodyBudget
  readonly connections: Connections
}

export interface PortLimitsOptions {
  readonly hasAdminPort: boolean
  readonly logger: Logger
  readonly metrics: Metrics
  readonly monotonicNowMs: () => number
  /** The proxies whose headers are trusted, so that clients behind them can be told apart. */
  readonly trustedProxies: TrustedProxies
}

export function composePortLimits(options: PortLimitsOptions): {
  publicLimits: PortLimits
  adminLimits: PortLimits
  /** The connection budget of the port for dashboards. */
  eventsConnections: Connections
} {
  const { hasAdminPort, logger, metrics, monotonicNowMs, trustedProxies } = options
  const openFilesMax = readOpenFilesMax()
  const bound = computeConnectionsMax(openFilesMax)
  const adminBound = hasAdminPort ? Math.ceil(bound / 8) : 0
  const atBound = createLogLimiter(monotonicNowMs)
  const atPipelining = createLogLimiter(monotonicNowMs)
  const onConnectionEnd = (reason: ConnectionEndReason) => {
    metrics.connectionsEnded.inc({ why: reason })
    if (reason === 'pipelined')
      atPipelining(times =>
        logger.warn(
          { times, unansweredMax },
          'closing connections with too many unanswered requests. Pipeline fewer requests at a time',
        ),
      )
    else
      atBound(times =>
        logger.warn(
          { times, bound, openFilesMax },
          'connection limit reached; closing connections of the address with the most. Raise the limit of open files for more connections',
        ),
      )
  }
  const logReaders: Record<AnswerEndReason, ReturnType<typeof createLogLimiter>> = {
    stalled: createLogLimiter(monotonicNowMs),
    no_room: createLogLimiter(monotonicNowMs),
  }
  const onAnswerEnd = (reason: AnswerEndReason) => {
    metrics.answersEnded.inc({ why: reason })
    logReaders[reason](times => logger.warn({ times, why: reason }, answerEndTexts[reason]))
  }
  const createAnswerBudget = (bytesMax: number) =>
    new AnswerBudget({
      bytesMax,
      senderOf: ({ headers, socket }) =>
        findSenderNetwork(findClientAddress(headers, socket.remoteAddress, trustedProxies)),
      onEnded: onAnswerEnd,
      readUnacknowledged: readTcpQueues,
    })
  const answers = {
    public: createAnswerBudget(answerBudgetBytes),
    admin: createAnswerBudget(adminAnswerBudgetBytes),
    events: createAnswerBudget(eventsAnswerBudgetBytes),
  }
  const onEnded = (reason: BodyEndReason) => metrics.requestBodiesEnded.inc({ why: reason })
  const limits = {
    publicLimits: {
      bodyBudget: new BodyBudget({ limits: bodyLimits, onEnded }),
      connections: new Connections(bound - adminBound, onConnectionEnd, answers.public),
    },
    adminLimits: {
      bodyBudget: new BodyBudget({ limits: adminBodyLimits, onEnded }),
      connections: new Connections(adminBound, onConnectionEnd, answers.admin),
    },
  }
  const eventsConnections = new Connections(Math.min(64, Math.ceil(bound / 8)), onConnectionEnd, answers.events)
  metrics.onCollect(() => {
    const { publicLimits, adminLimits } = limits
    metrics.requestBodyBytes.set(publicLimits.bodyBudget.heldBytes + adminLimits.bodyBudget.heldBytes)
    metrics.answerBytes.set(answers.public.heldBytes + answers.admin.heldBytes + answers.events.heldBytes)
    metrics.connections.set(publicLimits.connections.count + adminLimits.connections.count)
  })
  return { ...limits, eventsConnections }
}

const answerEndTexts: Record<AnswerEndReason, string> = {
  stalled: 'aborting responses whose clients stopped reading',
  no_room:
    'memory budget for responses exhausted; aborting those of the slowest readers, first of the address with the most. Use a proxy that buffers responses to shield Pennon from slow clients',
}
