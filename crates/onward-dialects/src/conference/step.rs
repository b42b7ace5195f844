//! Addresses of the steps of a conference, as the built-in workflow names them.

use onward_core::address::Address;

pub fn round(round: u32) -> Address {
    Address::from_text("round").turn(round)
}

/// A step directly in a round, such as `poster`.
pub fn in_round(number: u32, id: &str) -> Address {
    Address::from_text(&format!("{}/{id}", round(number)))
}

pub fn research(number: u32, researcher: &str) -> Address {
    in_round(number, "research").item(researcher)
}

/// Iteration 0 measures what is there; the others change something first.
pub fn iteration(number: u32, researcher: &str, iteration: u32) -> Address {
    let research = research(number, researcher);
    match iteration {
        0 => Address::from_text(&format!("{research}/baseline")),
        iteration => Address::from_text(&format!("{research}/iterate")).turn(iteration),
    }
}

pub fn synthesis() -> Address {
    Address::from_text("synthesis")
}

pub fn close() -> Address {
    Address::from_text("close")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_from_the_round_inwards() {
        assert_eq!(round(2).as_str(), "round[2]");
        assert_eq!(in_round(2, "poster").as_str(), "round[2]/poster");
        assert_eq!(research(2, "A").as_str(), "round[2]/research[A]");
        assert_eq!(iteration(2, "A", 0).as_str(), "round[2]/research[A]/baseline");
        assert_eq!(iteration(2, "A", 3).as_str(), "round[2]/research[A]/iterate[3]");
        assert_eq!(research(1, "x/y").as_str(), "round[1]/research[x%2Fy]");
    }
}
