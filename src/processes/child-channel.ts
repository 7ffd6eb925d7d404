// The child's end of supervision. A signal to the process group reaches parent and children, so a child ignores SIGTERM
// and SIGINT while its parent's channel is open. It ends on the parent's message or when the channel closes.

export type EndReason = 'shutdown' | 'parent_gone' | 'signal'

/**
 * Calls `onEnd` once, with the first reason to end. A process started by hand has no channel and ends on a signal.
 */
export function watchParent(onEnd: (reason: EndReason) => void, onMessage?: (message: { type: string }) => void): void {
  let ended = false
  const end = (reason: EndReason) => {
    if (ended) return
    ended = true
    onEnd(reason)
  }
  const onSignal = () => {
    if (!process.connected) end('signal')
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  if (process.send === undefined) return
  process.on('disconnect', () => end('parent_gone'))
  if (!process.connected) end('parent_gone')
  process.on('message', (message: { type: string }) => {
    if (message.type === 'shutdown') end('shutdown')
    else onMessage?.(message)
  })
}
