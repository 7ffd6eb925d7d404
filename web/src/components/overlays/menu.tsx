import { Fragment, type ReactElement } from 'react'
import {
  Menu as AriaMenu,
  MenuItem as AriaMenuItem,
  Keyboard,
  MenuTrigger,
  Popover,
  Separator,
} from 'react-aria-components'
import { joinClasses } from '../class-names.ts'
import css from '../controls/popups.module.css'
import { Icon } from '../icon.tsx'
import type { IconName } from '../icon-names.ts'
import { AnchoredPopover, type AnchorProps } from './popover.tsx'

export interface MenuItem {
  readonly id: string
  /** A verb and its object: "Turn off". */
  readonly label: string
  readonly icon?: IconName
  readonly isDanger?: boolean
  /** A key, such as `e`. */
  readonly shortcut?: string
  /** Why it cannot be done; shown below its label. */
  readonly disabledReason?: string | null
  /** Draws a line above. */
  readonly startsGroup?: boolean
  readonly href?: string
}

export interface MenuProps {
  readonly label: string
  readonly items: readonly MenuItem[]
  readonly onAction: (id: string) => void
}

/** A button, which is the child, and the menu that it opens. */
export function MenuButton({ children, ...menu }: MenuProps & { children: ReactElement }) {
  return (
    <MenuTrigger>
      {children}
      <Popover className={css.popover!} offset={4}>
        <MenuList {...menu} />
      </Popover>
    </MenuTrigger>
  )
}

/** A menu at any element: one for all rows of a grid. */
export function MenuAt({ anchor, onClose, ...menu }: MenuProps & AnchorProps) {
  return (
    <AnchoredPopover label={menu.label} anchor={anchor} onClose={onClose} isAtEnd>
      <MenuList {...menu} onClose={onClose} autoFocus="first" />
    </AnchoredPopover>
  )
}

interface MenuListProps extends MenuProps {
  readonly onClose?: () => void
  readonly autoFocus?: 'first'
}

function MenuList({ label, items, onAction, onClose, autoFocus }: MenuListProps) {
  return (
    <AriaMenu
      aria-label={label}
      className={css.options!}
      onAction={key => onAction(String(key))}
      disabledKeys={items.filter(item => typeof item.disabledReason === 'string').map(item => item.id)}
      onClose={onClose}
      autoFocus={autoFocus}
    >
      {items.map(item => (
        <Fragment key={item.id}>
          {item.startsGroup && <Separator className={css.separator!} />}
          <AriaMenuItem
            id={item.id}
            textValue={item.label}
            href={item.href}
            className={joinClasses(css.option, item.isDanger && css.danger)}
          >
            {item.icon ? <Icon name={item.icon} /> : <span className={css.mark} />}
            <span className={css.optionText}>
              {item.label}
              {typeof item.disabledReason === 'string' && <span className={css.detail}>{item.disabledReason}</span>}
            </span>
            {item.shortcut !== undefined && <Keyboard>{item.shortcut}</Keyboard>}
          </AriaMenuItem>
        </Fragment>
      ))}
    </AriaMenu>
  )
}
