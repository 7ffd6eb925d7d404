// The child's end of supervision. A signal to the process group reaches parent and children, so a child ignores SIGTERM
// and SIGINT while its parent's channel is open. It ends on the parent's message or when the channel closes.

import type { FromFront, FromWorker } from './messages.ts'

/** Calls `onEnd` once. A process that was started manually has no channel and ends on a signal. */
export function watchParent(onEnd: () => void, onMessage: (message: { type: string }) => void): void {
  let ended = false
  const end = () => {
    if (ended) return
    ended = true
    onEnd()
  }
  const onSignal = () => {
    if (!process.connected) end()
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  if (process.send === undefined) return
  process.on('disconnect', end)
  if (!process.connected) end()
  process.on('message', (message: { type: string }) => {
    if (message.type === 'shutdown') end()
    else onMessage(message)
  })
}

/** Sends a message to the parent, if there is one. The end of a parent is noticed through its channel. */
export function sendToParent(message: FromFront | FromWorker): void {
  if (process.connected) process.send!(message, () => undefined)
}
