import {
  UNSTABLE_Toast as AriaToast,
  Text,
  UNSTABLE_ToastContent as ToastContent,
  UNSTABLE_ToastQueue as ToastQueue,
  UNSTABLE_ToastRegion as ToastRegion,
} from 'react-aria-components'
import { joinClasses } from '../class-names.ts'
import { Button, IconButton } from '../controls/button.tsx'
import { Icon } from '../icon.tsx'
import css from './overlays.module.css'

export interface Toast {
  /** What happened: "new-checkout is off, served since 10:04:12". */
  readonly text: string
  readonly kind?: 'good' | 'bad'
  /** Takes it back. */
  readonly onUndo?: () => void
}

/** How long something can be undone here. The time does not run while the pointer or the focus is on the toasts. */
const toastMs = 8_000
const queue = new ToastQueue<Toast>({ maxVisibleToasts: 3 })

/** Shows a message, which is announced. One that says what failed stays until it is closed. */
export function showToast(toast: Toast): void {
  queue.add(toast, toast.kind === 'bad' ? {} : { timeout: toastMs })
}

/** The place of the toasts, once in the page. */
export function Toasts() {
  return (
    <ToastRegion queue={queue} className={css.toasts!} aria-label="Messages">
      {({ toast }) => {
        const { text, kind = 'good', onUndo } = toast.content
        return (
          <AriaToast toast={toast} className={joinClasses(css.toast, kind === 'bad' && css.toastBad)}>
            <Icon name={kind === 'bad' ? 'circle-alert' : 'circle-check'} />
            <ToastContent className={css.toastText}>
              <Text slot="title">{text}</Text>
            </ToastContent>
            {onUndo && (
              <Button
                icon="undo-2"
                slot={null}
                onPress={() => {
                  queue.close(toast.key)
                  onUndo()
                }}
              >
                Undo
              </Button>
            )}
            <IconButton icon="x" label="Close" slot="close" />
          </AriaToast>
        )
      }}
    </ToastRegion>
  )
}
