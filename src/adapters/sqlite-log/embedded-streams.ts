// The streams of the embedded log: one for each kind of traffic, in a folder of the same name.

import type { LogStream, StreamInfo, Traffic } from '#core/events/log-stream.ts'

/** Live first. */
export const embeddedStreams = [
  { stream: 'main', traffic: 'live' },
  { stream: 'historical', traffic: 'import' },
] as const satisfies readonly StreamInfo[]

export const embeddedStreamNames: readonly LogStream[] = embeddedStreams.map(({ stream }) => stream)

export function findStreamForTraffic(traffic: Traffic): LogStream {
  return traffic === 'import' ? 'historical' : 'main'
}

/** @throws RangeError for a stream that the embedded log does not have. */
export function findTrafficOfStream(stream: LogStream): Traffic {
  const known = embeddedStreams.find(each => each.stream === stream)
  if (known === undefined) throw new RangeError(`the log has no stream ${stream}`)
  return known.traffic
}
